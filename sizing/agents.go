package sizing

import (
	"strings"

	"github.com/cespare/xxhash/v2"
)

// A group is the part of the traffic that an agent declares itself to be. It
// proves nothing; it decides with whom a line is counted.
type group uint8

const (
	visitors group = iota // browsers, libraries, empty agents: everybody else
	crawlers
	monitoring
	previews
	feedReaders
	numGroups
)

var groupNames = [numGroups]string{"visitors", "crawlers", "monitoring", "previews", "feed-readers"}

func (g group) String() string { return groupNames[g] }

// An agent is one User-Agent, looked at once.
type agent struct {
	text    string
	hash    uint64
	group   group
	name    string // of a declared robot
	browser bool   // has the looks of a browser; not a proof
}

// declared lists the marks of programs that say what they are. Order matters:
// the first that occurs names the agent.
var declared = []struct {
	mark  string // lower case
	group group
	name  string
}{
	{"uptimerobot", monitoring, "UptimeRobot"}, {"pingdom", monitoring, "Pingdom"}, {"statuscake", monitoring, "StatusCake"},
	{"site24x7", monitoring, "Site24x7"}, {"googlehc", monitoring, "GoogleHC"}, {"elb-healthchecker", monitoring, "ELB-HealthChecker"},
	{"kube-probe", monitoring, "kube-probe"}, {"googlestackdrivermonitoring", monitoring, "Google Cloud Monitoring"},
	{"google-cloud-scheduler", monitoring, "Google Cloud Scheduler"}, {"amazon-route53-health", monitoring, "Route 53"},
	{"newrelicpinger", monitoring, "New Relic"}, {"datadog", monitoring, "Datadog"}, {"better uptime", monitoring, "Better Uptime"},
	{"checkly", monitoring, "Checkly"}, {"zabbix", monitoring, "Zabbix"}, {"nagios", monitoring, "Nagios"}, {"check_http", monitoring, "Nagios"},
	{"prometheus", monitoring, "Prometheus"}, {"blackbox", monitoring, "Prometheus"}, {"haproxy", monitoring, "HAProxy check"},
	{"wordpress/", monitoring, "WordPress (itself)"},
	{"facebookexternalhit", previews, "facebookexternalhit"}, {"facebookcatalog", previews, "facebookcatalog"},
	{"twitterbot", previews, "Twitterbot"}, {"slackbot", previews, "Slackbot"}, {"discordbot", previews, "Discordbot"},
	{"telegrambot", previews, "TelegramBot"}, {"whatsapp", previews, "WhatsApp"}, {"linkedinbot", previews, "LinkedInBot"},
	{"skypeuripreview", previews, "SkypeUriPreview"}, {"iframely", previews, "Iframely"}, {"embedly", previews, "Embedly"},
	{"redditbot", previews, "redditbot"}, {"mastodon/", previews, "Mastodon"}, {"bluesky cardyb", previews, "Bluesky"},
	{"feedly", feedReaders, "Feedly"}, {"feedfetcher", feedReaders, "Feedfetcher"}, {"feedburner", feedReaders, "FeedBurner"},
	{"inoreader", feedReaders, "Inoreader"}, {"newsblur", feedReaders, "NewsBlur"}, {"tiny tiny rss", feedReaders, "Tiny Tiny RSS"},
	{"freshrss", feedReaders, "FreshRSS"}, {"miniflux", feedReaders, "Miniflux"}, {"netnewswire", feedReaders, "NetNewsWire"},
	{"theoldreader", feedReaders, "The Old Reader"}, {"universalfeedparser", feedReaders, "feedparser"}, {"simplepie", feedReaders, "SimplePie"},
	{"feedbin", feedReaders, "Feedbin"}, {"rssowl", feedReaders, "RSSOwl"}, {"akregator", feedReaders, "Akregator"},
	{"googlebot", crawlers, "Googlebot"}, {"google-inspectiontool", crawlers, "Google-InspectionTool"}, {"googleother", crawlers, "GoogleOther"},
	{"google-extended", crawlers, "Google-Extended"}, {"adsbot-google", crawlers, "AdsBot-Google"}, {"mediapartners-google", crawlers, "Mediapartners-Google"},
	{"bingbot", crawlers, "bingbot"}, {"bingpreview", crawlers, "BingPreview"}, {"msnbot", crawlers, "msnbot"},
	{"duckduckbot", crawlers, "DuckDuckBot"}, {"applebot", crawlers, "Applebot"}, {"yandex", crawlers, "Yandex"}, {"baiduspider", crawlers, "Baiduspider"},
	{"petalbot", crawlers, "PetalBot"}, {"yahoo! slurp", crawlers, "Yahoo! Slurp"}, {"seznambot", crawlers, "SeznamBot"}, {"qwant", crawlers, "Qwant"},
	{"gptbot", crawlers, "GPTBot"}, {"oai-searchbot", crawlers, "OAI-SearchBot"}, {"chatgpt-user", crawlers, "ChatGPT-User"},
	{"claudebot", crawlers, "ClaudeBot"}, {"claude-", crawlers, "Claude"}, {"anthropic-ai", crawlers, "anthropic-ai"},
	{"perplexity", crawlers, "Perplexity"}, {"ccbot", crawlers, "CCBot"}, {"bytespider", crawlers, "Bytespider"}, {"amazonbot", crawlers, "Amazonbot"},
	{"meta-externalagent", crawlers, "meta-externalagent"}, {"meta-externalfetcher", crawlers, "meta-externalfetcher"}, {"cohere-ai", crawlers, "cohere-ai"},
	{"ahrefs", crawlers, "AhrefsBot"}, {"semrush", crawlers, "SemrushBot"}, {"mj12bot", crawlers, "MJ12bot"}, {"dotbot", crawlers, "DotBot"},
	{"dataforseo", crawlers, "DataForSeoBot"}, {"censys", crawlers, "Censys"}, {"zgrab", crawlers, "zgrab"}, {"internetmeasurement", crawlers, "InternetMeasurement"},
	{"archive.org", crawlers, "archive.org"}, {"ia_archiver", crawlers, "ia_archiver"}, {"sogou", crawlers, "Sogou"}, {"exabot", crawlers, "Exabot"},
}

// generic are words that programs without a known name describe themselves by.
// A word must stand alone or end one ("FooBot/1.0"), or "cubot" phones would be
// robots.
var generic = []string{"crawler", "spider", "scraper", "robot", "bot"}

// classifyAgent looks at a User-Agent.
func classifyAgent(ua string) *agent {
	a := &agent{text: strings.Clone(ua), hash: xxhash.Sum64String(ua)}
	low := strings.ToLower(ua)
	for _, d := range declared {
		if strings.Contains(low, d.mark) {
			a.group, a.name = d.group, d.name
			return a
		}
	}
	for _, w := range generic {
		if i := strings.Index(low, w); i >= 0 && wordEnd(low, i+len(w)) && !strings.Contains(low, "cubot") {
			a.group, a.name = crawlers, agentName(ua, i)
			return a
		}
	}
	a.browser = strings.HasPrefix(ua, "Mozilla/") && strings.Contains(ua, "(") && !strings.Contains(low, "headless") ||
		strings.HasPrefix(ua, "Opera/")
	return a
}

// wordEnd reports whether no letter follows.
func wordEnd(s string, i int) bool {
	return i >= len(s) || !(s[i] >= 'a' && s[i] <= 'z')
}

// agentName cuts the word around position i, such as "SuperBot".
func agentName(ua string, i int) string {
	isWord := func(c byte) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
	}
	from, to := i, i
	for from > 0 && isWord(ua[from-1]) {
		from--
	}
	for to < len(ua) && isWord(ua[to]) {
		to++
	}
	return ua[from:min(to, from+40)]
}

// agentTable remembers agents by text. It is bounded: agents are the visitor's
// own words.
type agentTable struct {
	seen map[string]*agent
	last *agent
}

const (
	maxAgents   = 100_000
	maxAgentLen = 512 // what differs only beyond is one agent
)

func (t *agentTable) lookup(ua string) *agent {
	if len(ua) > maxAgentLen {
		ua = ua[:maxAgentLen]
	}
	if t.last != nil && t.last.text == ua {
		return t.last
	}
	a, ok := t.seen[ua]
	if !ok {
		if len(t.seen) >= maxAgents || t.seen == nil {
			t.seen = make(map[string]*agent)
		}
		a = classifyAgent(ua)
		t.seen[a.text] = a
	}
	t.last = a
	return a
}

package crawlers

// Where the facts below were read. "Recorded in" names public data sets that
// repeat what the vendors publish; their snapshots were compared with each
// other at the dates given.
var (
	wellKnownBots = Fact{Source: "vendor's page, as recorded in arcjet/well-known-bots", Date: "2026-02"}
	knownRanges   = Fact{Source: "vendor's list, as recorded in sefinek/known-bots-ip-whitelist and arcjet/well-known-bots", Date: "2026-05-05"}
	googlePage    = Fact{Source: "developers.google.com, verifying requests from Google crawlers", Date: "2026-03-31"}
	fromMemory    = Fact{Source: "vendor's documentation, not re-read", Date: "2026-11", Memory: true}
)

const (
	googleRanges = "https://developers.google.com/static/crawling/ipranges/"
	googlebot    = "Googlebot"
)

// googleCommon crawl from the common ranges and obey robots.txt; the token of a
// special crawler from a common address is still Google's own.
var googleCommon = []string{googlebot, "Google-InspectionTool", "GoogleOther", "Storebot-Google", "Google-CloudVertexBot",
	"AdsBot-Google", "Mediapartners-Google", "APIs-Google", "Google-Safety"}

var searchCatalogue = Catalogue{
	Agents: []Agent{
		{Name: googlebot, Operator: "Google", Class: Search, Tokens: []string{"Googlebot", "Googlebot-Image", "Googlebot-Video", "Googlebot-News"}, Fact: wellKnownBots},
		{Name: "Google-InspectionTool", Operator: "Google", Class: Search, Tokens: []string{"Google-InspectionTool"}, Fact: wellKnownBots},
		{Name: "GoogleOther", Operator: "Google", Class: Search, Tokens: []string{"GoogleOther", "GoogleOther-Image", "GoogleOther-Video"}, Fact: wellKnownBots},
		{Name: "Storebot-Google", Operator: "Google", Class: Search, Tokens: []string{"Storebot-Google"}, Fact: wellKnownBots},
		{Name: "Google-CloudVertexBot", Operator: "Google", Class: AITraining, Tokens: []string{"Google-CloudVertexBot"}, Fact: fromMemory},
		{Name: "AdsBot-Google", Operator: "Google", Class: Preview, Tokens: []string{"AdsBot-Google", "AdsBot-Google-Mobile"}, Fact: wellKnownBots},
		{Name: "Mediapartners-Google", Operator: "Google", Class: Preview, Tokens: []string{"Mediapartners-Google"}, Fact: wellKnownBots},
		{Name: "APIs-Google", Operator: "Google", Class: Preview, Tokens: []string{"APIs-Google"}, Fact: wellKnownBots},
		{Name: "Google-Safety", Operator: "Google", Class: Monitor, Tokens: []string{"Google-Safety"}, Fact: fromMemory},
		{Name: "Google-user-triggered", Operator: "Google", Class: Preview, Tokens: []string{"FeedFetcher-Google", "Google-Read-Aloud", "Google-Site-Verification", "GoogleProducer", "Google-PageRenderer"}, Fact: fromMemory},
		{Name: "Google-Agent", Operator: "Google", Class: AIUser, Tokens: []string{"Google-Agent", "Google-NotebookLM"}, Fact: fromMemory},
		{Name: "Bingbot", Operator: "Microsoft", Class: Search, Tokens: []string{"bingbot", "msnbot", "BingPreview", "adidxbot", "MicrosoftPreview"}, Fact: wellKnownBots},
		{Name: "Applebot", Operator: "Apple", Class: Search, Tokens: []string{"Applebot"}, Fact: wellKnownBots},
		{Name: "DuckDuckBot", Operator: "DuckDuckGo", Class: Search, Tokens: []string{"DuckDuckBot"}, Fact: wellKnownBots},
		{Name: "DuckAssistBot", Operator: "DuckDuckGo", Class: AISearch, Tokens: []string{"DuckAssistBot"}, Fact: fromMemory},
		{Name: "YandexBot", Operator: "Yandex", Class: Search, Tokens: []string{"YandexBot", "YandexImages", "YandexMobileBot", "YandexRenderResourcesBot", "YandexAccessibilityBot"}, Fact: wellKnownBots},
		{Name: "Baiduspider", Operator: "Baidu", Class: Search, Tokens: []string{"Baiduspider", "Baiduspider-render", "Baiduspider-image"}, Fact: wellKnownBots},
		{Name: "MojeekBot", Operator: "Mojeek", Class: Search, Tokens: []string{"MojeekBot"}, Fact: wellKnownBots},
		{Name: "Qwantbot", Operator: "Qwant", Class: Search, Tokens: []string{"Qwantbot", "Qwantify"}, Fact: wellKnownBots},
		{Name: "Pinterestbot", Operator: "Pinterest", Class: Preview, Tokens: []string{"Pinterestbot", "Pinterest"}, Fact: wellKnownBots},
	},
	Lists: []List{
		{ID: "google-common", URL: googleRanges + "common-crawlers.json", Format: GoogleJSON, Agents: googleCommon, Dedicated: true, Fact: googlePage},
		{ID: "google-special", URL: googleRanges + "special-crawlers.json", Format: GoogleJSON, Dedicated: true,
			Agents: []string{"AdsBot-Google", "Mediapartners-Google", "APIs-Google", "Google-Safety", "Google-InspectionTool"}, Fact: googlePage},
		// Customers of the cloud can trigger these fetches: a claim of a named
		// fetcher is needed too, and Googlebot is never proven by it.
		{ID: "google-user-triggered", URL: googleRanges + "user-triggered-fetchers.json", Format: GoogleJSON, Agents: []string{"Google-user-triggered"}, Fact: googlePage},
		{ID: "google-user-triggered-google", URL: googleRanges + "user-triggered-fetchers-google.json", Format: GoogleJSON,
			Agents: []string{"Google-user-triggered", "Google-Agent"}, Fact: googlePage},
		{ID: "google-user-triggered-agents", URL: googleRanges + "user-triggered-agents.json", Format: GoogleJSON, Agents: []string{"Google-Agent"}, Fact: googlePage},
		{ID: "bing", URL: "https://www.bing.com/toolbox/bingbot.json", Format: GoogleJSON, Agents: []string{"Bingbot"}, Dedicated: true, Fact: knownRanges},
		{ID: "apple", URL: "https://search.developer.apple.com/applebot.json", Format: GoogleJSON, Agents: []string{"Applebot"}, Dedicated: true, Fact: knownRanges},
		{ID: "duckduckgo", URL: "https://duckduckgo.com/duckduckbot.json", Format: GoogleJSON, Agents: []string{"DuckDuckBot", "DuckAssistBot"}, Dedicated: true, Fact: knownRanges},
		{ID: "mojeek", URL: "https://www.mojeek.com/mojeekbot.json", Format: GoogleJSON, Agents: []string{"MojeekBot"}, Dedicated: true, Fact: knownRanges},
		{ID: "qwant", URL: "https://help.qwant.com/wp-content/uploads/sites/latest/qwantbot.json", Format: GoogleJSON, Agents: []string{"Qwantbot"}, Dedicated: true, Fact: knownRanges},
	},
	Reverse: []Reverse{
		{Suffix: ".googlebot.com", Agents: googleCommon, Fact: googlePage},
		{Prefix: "rate-limited-proxy-", Suffix: ".google.com", Agents: []string{"AdsBot-Google", "Mediapartners-Google", "APIs-Google", "Google-Safety"}, Fact: googlePage},
		{Prefix: "google-proxy-", Suffix: ".google.com", Agents: []string{"Google-user-triggered", "Google-Agent"}, Fact: googlePage},
		{Suffix: ".search.msn.com", Agents: []string{"Bingbot"}, Fact: wellKnownBots},
		{Suffix: ".applebot.apple.com", Agents: []string{"Applebot"}, Fact: wellKnownBots},
		{Suffix: ".yandex.ru", Agents: []string{"YandexBot"}, Fact: wellKnownBots},
		{Suffix: ".yandex.net", Agents: []string{"YandexBot"}, Fact: wellKnownBots},
		{Suffix: ".yandex.com", Agents: []string{"YandexBot"}, Fact: wellKnownBots},
		// Baidu names its whole zone; the crawl hosts are narrower and enough.
		{Suffix: ".crawl.baidu.com", Agents: []string{"Baiduspider"}, Fact: wellKnownBots},
		{Suffix: ".crawl.baidu.jp", Agents: []string{"Baiduspider"}, Fact: wellKnownBots},
		{Suffix: ".pinterest.com", Agents: []string{"Pinterestbot"}, Fact: wellKnownBots},
		{Suffix: ".pinterestcrawler.com", Agents: []string{"Pinterestbot"}, Fact: wellKnownBots},
	},
}

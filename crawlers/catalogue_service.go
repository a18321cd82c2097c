package crawlers

// serviceCatalogue: previews, archives, monitors and link-data sellers. Stripe
// and Datadog publish JSON of shapes of their own, Amazon's list has no stable
// address, Yandex and Baidu publish a page for people: those have no List here.
var serviceCatalogue = Catalogue{
	Agents: []Agent{
		{Name: "facebookexternalhit", Operator: "Meta", Class: Preview, Tokens: []string{"facebookexternalhit", "facebookcatalog", "meta-externalfetcher"}, Fact: wellKnownBots},
		{Name: "archive.org_bot", Operator: "Internet Archive", Class: Archive, Tokens: []string{"archive.org_bot", "ia_archiver"}, Fact: fromMemory},
		{Name: "UptimeRobot", Operator: "UptimeRobot", Class: Monitor, Tokens: []string{"UptimeRobot"}, Fact: wellKnownBots},
		{Name: "BetterStack", Operator: "Better Stack", Class: Monitor, Tokens: []string{"Better Uptime Bot", "Better Stack Better Uptime Bot"}, Fact: fromMemory},
		{Name: "Pingdom", Operator: "Pingdom", Class: Monitor, Tokens: []string{"Pingdom.com_bot", "PingdomPageSpeed", "PingdomTMS"}, Fact: wellKnownBots},
		{Name: "StripeBot", Operator: "Stripe", Class: Monitor, Tokens: []string{"Stripebot"}, Fact: fromMemory},
		{Name: "AhrefsBot", Operator: "Ahrefs", Class: SEO, Tokens: []string{"AhrefsBot", "AhrefsSiteAudit"}, Fact: wellKnownBots},
	},
	Lists: []List{
		// Meta's whole network, its staff and customers included: the token is needed too.
		{ID: "meta", URL: "https://www.facebook.com/peering/geofeed", Format: CSV, Agents: []string{"facebookexternalhit", "meta-externalagent"}, Fact: knownRanges},
		// The network of AS7941, all of the archive's machines: the token is needed too.
		{ID: "internet-archive", Format: PlainText, Agents: []string{"archive.org_bot"}, Fact: knownRanges},
		{ID: "uptimerobot", URL: "https://uptimerobot.com/inc/files/ips/IPv4andIPv6.txt", Format: PlainText, Agents: []string{"UptimeRobot"}, Dedicated: true, Fact: knownRanges},
		{ID: "betterstack", URL: "https://uptime.betterstack.com/ips.txt", Format: PlainText, Agents: []string{"BetterStack"}, Dedicated: true, Fact: knownRanges},
		{ID: "pingdom-v4", URL: "https://my.pingdom.com/probes/ipv4", Format: PlainText, Agents: []string{"Pingdom"}, Dedicated: true, Fact: knownRanges},
		{ID: "pingdom-v6", URL: "https://my.pingdom.com/probes/ipv6", Format: PlainText, Agents: []string{"Pingdom"}, Dedicated: true, Fact: knownRanges},
		// Nearly ten thousand single addresses at hosting companies.
		{ID: "ahrefs", URL: "https://api.ahrefs.com/v3/public/crawler-ip-ranges", Format: GoogleJSON, Agents: []string{"AhrefsBot"}, MaxPrefixes: 20000, Fact: knownRanges},
	},
	Reverse: []Reverse{
		{Suffix: ".archive.org", Agents: []string{"archive.org_bot"}, Fact: fromMemory},
		{Suffix: ".fbsv.net", Agents: []string{"facebookexternalhit", "meta-externalagent"}, Fact: fromMemory},
		{Prefix: "", Suffix: ".crawl.stripe.com", Agents: []string{"StripeBot"}, Fact: wellKnownBots},
		{Suffix: ".uptimerobot.com", Agents: []string{"UptimeRobot"}, Fact: wellKnownBots},
	},
}

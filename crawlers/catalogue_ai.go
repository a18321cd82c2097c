package crawlers

var claudePage = Fact{Source: "claude.com/crawling, list published in 2026", Date: "2026-05-05"}

var aiCatalogue = Catalogue{
	Agents: []Agent{
		{Name: "GPTBot", Operator: "OpenAI", Class: AITraining, Tokens: []string{"GPTBot"}, Fact: wellKnownBots},
		{Name: "OAI-SearchBot", Operator: "OpenAI", Class: AISearch, Tokens: []string{"OAI-SearchBot"}, Fact: wellKnownBots},
		{Name: "ChatGPT-User", Operator: "OpenAI", Class: AIUser, Tokens: []string{"ChatGPT-User"}, Fact: wellKnownBots},
		{Name: "ClaudeBot", Operator: "Anthropic", Class: AITraining, Tokens: []string{"ClaudeBot"}, Fact: claudePage},
		{Name: "Claude-SearchBot", Operator: "Anthropic", Class: AISearch, Tokens: []string{"Claude-SearchBot"}, Fact: claudePage},
		{Name: "Claude-User", Operator: "Anthropic", Class: AIUser, Tokens: []string{"Claude-User"}, Fact: claudePage},
		{Name: "PerplexityBot", Operator: "Perplexity", Class: AISearch, Tokens: []string{"PerplexityBot"}, Fact: wellKnownBots},
		{Name: "Perplexity-User", Operator: "Perplexity", Class: AIUser, Tokens: []string{"Perplexity-User"}, Fact: wellKnownBots},
		{Name: "MistralAI-User", Operator: "Mistral", Class: AIUser, Tokens: []string{"MistralAI-User"}, Fact: wellKnownBots},
		{Name: "Amazonbot", Operator: "Amazon", Class: AISearch, Tokens: []string{"Amazonbot"}, Fact: fromMemory},
		{Name: "AmazonAdBot", Operator: "Amazon", Class: Preview, Tokens: []string{"AmazonAdBot"}, Fact: wellKnownBots},
		{Name: "meta-externalagent", Operator: "Meta", Class: AITraining, Tokens: []string{"meta-externalagent"}, Fact: wellKnownBots},
		{Name: "CCBot", Operator: "Common Crawl", Class: AITraining, Tokens: []string{"CCBot"}, Fact: wellKnownBots},
	},
	Lists: []List{
		{ID: "openai-gptbot", URL: "https://openai.com/gptbot.json", Format: GoogleJSON, Agents: []string{"GPTBot"}, Dedicated: true, Fact: knownRanges},
		{ID: "openai-searchbot", URL: "https://openai.com/searchbot.json", Format: GoogleJSON, Agents: []string{"OAI-SearchBot"}, Dedicated: true, Fact: knownRanges},
		{ID: "openai-chatgpt-user", URL: "https://openai.com/chatgpt-user.json", Format: GoogleJSON, Agents: []string{"ChatGPT-User"}, Dedicated: true, Fact: knownRanges},
		// One list for three products: without a claim the address stands for the
		// trainer, the class that a policy is least likely to exempt.
		{ID: "anthropic", URL: "https://claude.com/crawling/bots.json", Format: GoogleJSON, Agents: []string{"ClaudeBot", "Claude-SearchBot", "Claude-User"}, Dedicated: true, Fact: claudePage},
		{ID: "perplexity-bot", URL: "https://www.perplexity.ai/perplexitybot.json", Format: GoogleJSON, Agents: []string{"PerplexityBot"}, Dedicated: true, Fact: knownRanges},
		{ID: "perplexity-user", URL: "https://www.perplexity.ai/perplexity-user.json", Format: GoogleJSON, Agents: []string{"Perplexity-User"}, Dedicated: true, Fact: knownRanges},
		{ID: "mistral-user", URL: "https://mistral.ai/mistralai-user-ips.json", Format: GoogleJSON, Agents: []string{"MistralAI-User"}, Dedicated: true, Fact: knownRanges},
		{ID: "commoncrawl", URL: "https://index.commoncrawl.org/ccbot.json", Format: GoogleJSON, Agents: []string{"CCBot"}, Dedicated: true, Fact: knownRanges},
	},
	Reverse: []Reverse{
		{Suffix: ".crawl.commoncrawl.org", Agents: []string{"CCBot"}, Fact: wellKnownBots},
		{Suffix: ".crawl.amazonbot.amazon", Agents: []string{"Amazonbot"}, Fact: fromMemory},
		{Suffix: ".amazonadbot.com", Agents: []string{"AmazonAdBot"}, Fact: wellKnownBots},
	},
}

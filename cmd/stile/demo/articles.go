package demo

import (
	_ "embed"
	"strings"
)

// An article is one page of the site.
type article struct {
	Number         int // from 1, as in its address
	Title, Summary string
	Text           []string
}

//go:embed site/articles.txt
var articlesText string

// The middle of an article. Which of them an article has depends on its number
// only, so that a page is the same each time it is asked for.
var paragraphs = [...]string{
	"The path comes down from the ridge beside a wall that has stood for two hundred years, and meets the fence at the one place where the ground is level on both sides.",
	"Stand with one hand on the post. It leans a little towards the valley, as all of them do after the third winter, and it holds for another ten.",
	"The animals have trodden their own line along the wire. It is straight where the grass is poor and wanders where it is good, and nowhere does it cross.",
	"Anyone may go over here, at any hour, and nobody is asked for a name. What cannot go over is a crowd in a hurry.",
	"On the far side the ground is wet until May. Keep to the left, where someone has laid flat stones, and do not trust the green part.",
	"A board by the gate gives the distance in minutes rather than miles, which is a kindness to everyone but the person who measured it.",
	"From here it is downhill. The bells can be heard when the wind is in the west, and the bakery can be smelled when it is not.",
}

// parseArticles reads the embedded list: one article a line, title and summary
// separated by a bar.
func parseArticles(text string) []article {
	var list []article
	for line := range strings.Lines(text) {
		title, summary, _ := strings.Cut(strings.TrimSpace(line), " | ")
		n := len(list) + 1
		a := article{Number: n, Title: title, Summary: summary}
		for i := range 3 {
			a.Text = append(a.Text, paragraphs[(n+2*i)%len(paragraphs)])
		}
		list = append(list, a)
	}
	return list
}

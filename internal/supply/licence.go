package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// words reduces a text to lower-case words, so that line breaks, bullets and
// quotation marks are no difference.
func words(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), " ")
}

// A body is the text of one licence, in words, as a pattern: holders differ.
type body struct {
	id      string // SPDX
	pattern *regexp.Regexp
}

const (
	mitGrant = `permission is hereby granted free of charge to any person obtaining a copy of this software and associated documentation files the software to deal in the software without restriction ` +
		`including without limitation the rights to use copy modify merge publish distribute sublicense and or sell copies of the software and to permit persons to whom the software is furnished to do so`
	mitDenial = `the software is provided as is without warranty of any kind express or implied including but not limited to the warranties of merchantability fitness for a particular purpose and non ?infringement ` +
		`in no event shall the authors or copyright holders be liable for any claim damages or other liability whether in an action of contract tort or otherwise arising from out of or in connection with the software or the use or other dealings in the software`
	bsdGrant = `redistribution and use in source and binary forms with or without modification are permitted provided that the following conditions are met ` +
		`(1 )?redistributions of source code must retain the above copyright notice this list of conditions and the following disclaimer ` +
		`(2 )?redistributions in binary form must reproduce the above copyright notice this list of conditions and the following disclaimer in the documentation and or other materials provided with the distribution `
	bsdNames = `(3 )?neither the name of [a-z0-9 ]{2,80}? nor the names of (its )?contributors may be used to endorse or promote products derived from this software without specific prior written permission `
	// One well-known copy of it misspells "copyright".
	bsdDenial = `this software is provided by the (copyr?ight holders?|authors?|regents) and contributors as is and any express or implied warranties including but not limited to the implied warranties of merchantability and fitness for a particular purpose are disclaimed ` +
		`in no event shall the (copyright (owner|holder)s?|authors?|regents) or contributors be liable for any direct indirect incidental special exemplary or consequential damages including but not limited to procurement of substitute goods or services loss of use data or profits or business interruption ` +
		`however caused and on any theory of liability whether in contract strict liability or tort including negligence or otherwise arising in any way out of the use of this software even if advised of the possibility of such damage`
	isc = `permission to use copy modify and or distribute this software for any purpose with or without fee is hereby granted provided that the above copyright notice and this permission notice appear in all copies ` +
		`the software is provided as is and the author disclaims all warranties with regard to this software including all implied warranties of merchantability and fitness ` +
		`in no event shall the author be liable for any special direct indirect or consequential damages or any damages whatsoever resulting from loss of use data or profits whether in an action of contract negligence or other tortious action arising out of or in connection with the use or performance of this software`
	apacheNotice = `licensed under the apache license version 2 0 the license you may not use this file except in compliance with the license you may obtain a copy of the license at http www apache org licenses license 2 0 ` +
		`unless required by applicable law or agreed to in writing software distributed under the license is distributed on an as is basis without warranties or conditions of any kind either express or implied see the license for the specific language governing permissions and limitations under the license`
)

// A judge knows the licences that this module may be made of. Only a text that
// is one of them word for word is recognised: a changed condition is another
// licence.
type judge struct{ bodies []body }

// newJudge takes the text of the Apache License from the module's own LICENSE.
func newJudge(apache string) (*judge, error) {
	const first, last = "terms and conditions for use reproduction and distribution", "end of terms and conditions"
	text := words(apache)
	from, to := strings.Index(text, first), strings.Index(text, last)
	if from < 0 || to < from {
		return nil, fmt.Errorf("LICENSE is not the Apache License 2.0")
	}
	terms := regexp.QuoteMeta(strings.TrimSpace(text[from:to]))
	j := &judge{}
	for _, b := range [...]struct{ id, pattern string }{
		{"Apache-2.0", terms}, {"Apache-2.0", apacheNotice},
		{"MIT", mitGrant + ` subject to the following conditions the above copyright notice and this permission notice shall be included in all copies or substantial portions of the software ` + mitDenial},
		{"MIT-0", mitGrant + ` ` + mitDenial},
		{"BSD-3-Clause", bsdGrant + bsdNames + bsdDenial}, {"BSD-2-Clause", bsdGrant + bsdDenial},
		{"ISC", isc},
	} {
		j.bodies = append(j.bodies, body{b.id, regexp.MustCompile(b.pattern)})
	}
	return j, nil
}

// known are words by which a licence that is not in bodies is named in an error.
var known = [...]struct{ id, phrase string }{
	{"MPL-2.0", "mozilla public license version 2 0"},
	{"AGPL", "affero general public license"}, {"LGPL", "lesser general public license"}, {"GPL", "general public license"},
	{"EPL", "eclipse public license"}, {"CDDL", "common development and distribution license"}, {"SSPL", "server side public license"},
	{"BUSL", "business source license"}, {"Commons Clause", "commons clause"}, {"CC", "creative commons"},
}

// residue is how many words a licence file may hold beside licences: titles,
// holders, which files are meant.
const residue = 200

// of returns the licences of a licence file. An error says why it is not to be
// accepted: another licence, or words that nobody has read.
func (j *judge) of(text string) ([]string, error) {
	rest := words(text)
	var ids []string
	for _, b := range j.bodies {
		if b.pattern.MatchString(rest) {
			rest = b.pattern.ReplaceAllString(rest, " ")
			if !slices.Contains(ids, b.id) {
				ids = append(ids, b.id)
			}
		}
	}
	for _, k := range known {
		if strings.Contains(rest, k.phrase) {
			return nil, fmt.Errorf("speaks of %s", k.id)
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("an unknown licence: %.80q", rest)
	}
	if n := len(strings.Fields(rest)); n > residue {
		return nil, fmt.Errorf("%s and %d more words: %.80q", strings.Join(ids, " and "), n, rest)
	}
	slices.Sort(ids)
	return ids, nil
}

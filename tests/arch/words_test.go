// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// retiredWords are words that are not used any more, in all their forms, and what to write instead.
//
// Why: readers search for the usual term of Kubernetes, and many of them read English as a second language.
// Remedy: write that term, and rewrite the sentence where it does not fit.
var retiredWords = []struct {
	forms   []string
	instead string
}{
	{[]string{"somebody"}, "the noun: a user, another client, another owner"},
	{[]string{"nobody"}, "what is missing: no user, not found, unauthenticated"},
	{[]string{"whoever"}, "the noun: a user who, a client that, the caller"},
	{[]string{"whose"}, "with, of which, or a second sentence"},
	{[]string{"in force"}, "applied revision, current revision"},
	{[]string{"anew"}, "again, recreate"},
	{[]string{"mend", "mends", "mended", "mending"}, "fix, repair"},
	{
		[]string{"let go", "lets go", "letting go", "let it go", "lets it go", "let them go", "lets them go"},
		"release, orphan",
	},
	{
		[]string{"take up", "takes up", "taken up", "taking up", "took up", "take it up", "takes it up", "take them up", "takes them up"},
		"adopt, start, use",
	},
	{
		[]string{"give up", "gives up", "given up", "giving up", "gave up", "give it up", "gives it up", "gave it up"},
		"stop, drop, release, time out",
	},
	{[]string{"stranger", "strangers"}, "another user, unauthenticated client"},
	{[]string{"look after", "looks after", "looked after", "looking after"}, "reconcile, manage"},
	{[]string{"care for", "cares for", "cares", "cared", "caring"}, "reconcile, correct drift"},
	{[]string{"hang", "hangs", "hanging", "hung"}, "is stuck, blocks, times out"},
	{[]string{"interfere", "interferes", "interfered", "interfering"}, "is changed by another client, conflicts"},
	{[]string{"as it were"}, "nothing"},
	{[]string{"it is said"}, "the subject: the message says, the condition reports"},
	{[]string{"farewell", "farewells"}, "removal plan"},
	{[]string{"nursery", "nurseries"}, "what it holds"},
}

// allowedWord is an exception: a word in a file, or all words if the word is left out.
type allowedWord struct{ file, word, reason string }

var allowedWords = []allowedWord{
	{"tests/arch/words_test.go", "", "it names the words"},
	{"docs/reference/bundlerollout.md", "whose", "Kubernetes describes its label selectors so"},
	{"docs/reference/bundledeployment.md", "whose", "Kubernetes describes its label selectors so"},
}

// TestRetiredWords refuses retired words in all Go files, in the pages of the root folder, and in all pages of docs.
func TestRetiredWords(t *testing.T) {
	files := sources(t, "*.go", ":(glob)*.md", "docs/*.md")
	if len(files) == 0 {
		t.Fatal("no file was found: correct the patterns")
	}
	used := map[int]bool{}
	for _, f := range files {
		if strings.Contains(f.name, "/testdata/") {
			continue
		}
		for _, found := range retiredIn(f) {
			if allowed := slices.IndexFunc(allowedWords, func(a allowedWord) bool {
				return a.file == f.name && (a.word == "" || a.word == found.word)
			}); allowed >= 0 {
				used[allowed] = true
				continue
			}
			t.Errorf("%s:%d: %q is retired, because readers search for the usual term: write %s", f.name, found.line, found.word, found.instead)
		}
	}
	for i, allowed := range allowedWords {
		if !used[i] {
			t.Errorf("the exception %q of %s is not needed: remove it", allowed.word, allowed.file)
		}
	}
}

type retiredWord struct {
	word    string
	line    int
	instead string
}

// part is a word, or a part of an identifier in camelCase.
type part struct {
	text string // in lower case
	line int
	// follows: only blanks, line ends or comment signs are between this part and the one before it.
	follows bool
}

var (
	partPattern = regexp.MustCompile(`[A-Z][a-z]+|[a-z]+|[A-Z]+`)
	gapPattern  = regexp.MustCompile(`^[\s/_-]*$`)
)

// retiredIn returns the retired words of a file.
func retiredIn(f sourceFile) []retiredWord {
	parts := partsOf(f.content)
	var found []retiredWord
	for i := range parts {
		for _, retired := range retiredByFirstWord[parts[i].text] {
			if beginsWith(parts[i:], strings.Fields(retired.word)) {
				retired.line = parts[i].line
				found = append(found, retired)
			}
		}
	}
	return found
}

// retiredByFirstWord are the forms of all retired words, by the first word of each.
var retiredByFirstWord = func() map[string][]retiredWord {
	byFirst := map[string][]retiredWord{}
	for _, retired := range retiredWords {
		for _, form := range retired.forms {
			first := strings.Fields(form)[0]
			byFirst[first] = append(byFirst[first], retiredWord{word: form, instead: retired.instead})
		}
	}
	return byFirst
}()

func partsOf(content []byte) []part {
	var parts []part
	line, end := 1, 0
	for _, at := range partPattern.FindAllIndex(content, -1) {
		gap := content[end:at[0]]
		line += bytes.Count(gap, []byte("\n"))
		parts = append(parts, part{string(bytes.ToLower(content[at[0]:at[1]])), line, gapPattern.Match(gap)})
		end = at[1]
	}
	return parts
}

func beginsWith(parts []part, words []string) bool {
	if len(parts) < len(words) {
		return false
	}
	for i, word := range words {
		if parts[i].text != word || i > 0 && !parts[i].follows {
			return false
		}
	}
	return true
}

func TestRetiredWordsAreFound(t *testing.T) {
	for name, tt := range map[string]struct{ reason, file, content, want string }{
		"comment":        {"whole words", "a.go", "// It waits for\n// somebody.\n", "2 somebody"},
		"capitals":       {"at the beginning of a sentence", "a.go", "// Nobody waits.\n", "1 nobody"},
		"string":         {"messages are text, too", "a.go", `var a = "stays in force"`, "1 in force"},
		"two lines":      {"comments are wrapped", "a.go", "// what is in\n\t// force stays\n", "1 in force"},
		"identifier":     {"camelCase is words", "a.go", "func revisionInForce() {}\n", "1 in force"},
		"first word":     {"also unexported", "a.go", "nurserySize := 1\n", "1 nursery"},
		"test name":      {"after an id", "a_test.go", "func TestF4GivesUp(t *testing.T) {}\n", "1 gives up"},
		"page":           {"pages of developers", "docs/dev/a.md", "# A\n\nThe caches begin anew.\n", "3 anew"},
		"decision":       {"in the title and in the text", "docs/adr/0001-a.md", "# 1. Who lets go\n\nWhoever reads.\n", "1 lets go, 3 whoever"},
		"part of a word": {"another word", "a.go", "// recommended, change, joinForce\n", ""},
		"another name":   {"of the standard library", "a.go", "request(http.NoBody)\n", ""},
		"statement":      {"an assignment, and a goroutine", "a.go", "let := 1\ngo f()\n", ""},
	} {
		var found []string
		for _, word := range retiredIn(sourceFile{tt.file, []byte(tt.content)}) {
			found = append(found, fmt.Sprintf("%d %s", word.line, word.word))
		}
		if got := strings.Join(found, ", "); got != tt.want {
			t.Errorf("%s (%s): found %q, want %q", name, tt.reason, got, tt.want)
		}
	}
}

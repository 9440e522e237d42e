// SPDX-License-Identifier: Apache-2.0

// Package markdown reads the pages of the documentation as far as tests need them: code blocks, what
// comments say about them, links and anchors.
package markdown

import (
	"fmt"
	"regexp"
	"strings"
)

// Step is a code block of a page, or a script in a comment that runs where it stands.
type Step struct {
	Page     string
	Line     int    // of the fence, or of the comment
	Language string // of the block: sh, console, yaml, text; empty for a script in a comment
	Text     string
	Hidden   bool // in a comment
	Marks    []Mark
}

// Mark is what a comment says about the block that follows it: <!-- test: NAME ARGUMENT -->.
type Mark struct{ Name, Argument string }

// Mark is the argument of a mark of the given name, and whether there is one.
func (s Step) Mark(name string) (string, bool) {
	for _, mark := range s.Marks {
		if mark.Name == name {
			return mark.Argument, true
		}
	}
	return "", false
}

// String is where the step is.
func (s Step) String() string { return fmt.Sprintf("%s:%d", s.Page, s.Line) }

// CommandLines are the arguments of a program, such as kubectl satchel-migrate, wherever a block calls it.
func (s Step) CommandLines(program string) []string {
	if s.Language != "sh" && s.Language != "console" {
		return nil
	}
	invocation := regexp.MustCompile(`(?:^|[|;&(] *|\$ )` + regexp.QuoteMeta(program) + ` ([^|;&#>)]*)`)
	var lines []string
	for line := range strings.SplitSeq(strings.ReplaceAll(s.Text, "\\\n", " "), "\n") {
		if s.Language == "console" && !strings.HasPrefix(line, "$ ") {
			continue
		}
		for _, found := range invocation.FindAllStringSubmatch(line, -1) {
			lines = append(lines, strings.TrimSpace(found[1]))
		}
	}
	return lines
}

// Page is what tests read in a page.
type Page struct {
	Name    string
	Steps   []Step
	Links   []Link
	Anchors map[string]bool // of the headings, as GitHub makes them
	Marks   []Mark          // <!-- test: page NAME ARGUMENT -->
}

// Mark is the argument of a mark of the whole page, and whether there is one.
func (p Page) Mark(name string) (string, bool) { return Step{Marks: p.Marks}.Mark(name) }

// Link is a link to a file, an anchor or an address.
type Link struct {
	Line   int
	Target string
}

// known are the marks of a block, and of a page.
var known = map[string]bool{
	"run": true, "skip": true, "exit": true, "may": true, "file": true, "in": true, "parse": true, "output": true, "needs": true, "page": true,
}

// Parse reads a page. It fails on what is not closed, and on marks that there are not.
func Parse(name, text string) (Page, error) {
	r := &reader{page: Page{Name: name, Anchors: map[string]bool{}}, lines: strings.Split(text, "\n"), seen: map[string]int{}}
	for r.next < len(r.lines) {
		if err := r.line(); err != nil {
			return Page{}, fmt.Errorf("%s:%d: %w", name, r.next, err)
		}
	}
	if len(r.marks) > 0 {
		return Page{}, fmt.Errorf("%s: no block follows the comment %q", name, "test: "+r.marks[0].Name)
	}
	r.page.Links = links(strings.Join(r.prose, "\n"))
	return r.page, nil
}

// reader goes through a page line by line.
type reader struct {
	page  Page
	lines []string
	next  int
	marks []Mark         // for the block that comes
	prose []string       // the lines, empty where there is code or a comment
	seen  map[string]int // how often a heading was there
}

var (
	fence   = regexp.MustCompile("^( *)```+([a-z]*)$")
	heading = regexp.MustCompile(`^#{1,6} +(.+?) *$`)
)

// line reads one line, or all lines of a block or comment that begins there.
func (r *reader) line() error {
	line := r.lines[r.next]
	r.next++
	switch {
	case fence.MatchString(line):
		return r.block(line)
	case strings.HasPrefix(line, "<!--"):
		return r.comment(line)
	}
	if found := heading.FindStringSubmatch(line); found != nil {
		r.anchor(found[1])
	}
	r.prose = append(r.prose, line)
	return nil
}

// until takes lines up to one that holds the end, which it takes too.
func (r *reader) until(holds func(string) bool) ([]string, error) {
	begin := r.next
	for ; r.next < len(r.lines); r.next++ {
		if holds(r.lines[r.next]) {
			taken := r.lines[begin:r.next]
			r.next++
			for range r.next - begin {
				r.prose = append(r.prose, "")
			}
			return taken, nil
		}
	}
	return nil, fmt.Errorf("what begins at line %d has no end", begin)
}

func (r *reader) block(opening string) error {
	found := fence.FindStringSubmatch(opening)
	step := Step{Page: r.page.Name, Line: r.next, Language: found[2], Marks: r.marks}
	r.prose = append(r.prose, "")
	lines, err := r.until(func(line string) bool { return strings.TrimSpace(line) == strings.TrimSpace(opening)[:3] })
	if err != nil {
		return err
	}
	for _, line := range lines {
		step.Text += strings.TrimPrefix(line, found[1]) + "\n"
	}
	r.page.Steps, r.marks = append(r.page.Steps, step), nil
	return nil
}

// comment reads a comment; only those that begin with "test:" mean something here.
func (r *reader) comment(opening string) error {
	at := r.next
	r.prose = append(r.prose, "")
	text := strings.TrimPrefix(opening, "<!--")
	if !strings.Contains(opening, "-->") {
		lines, err := r.until(func(line string) bool { return strings.Contains(line, "-->") })
		if err != nil {
			return err
		}
		text += "\n" + strings.Join(lines, "\n") + "\n" + r.lines[r.next-1]
	}
	text, _, _ = strings.Cut(text, "-->")
	text, isTest := strings.CutPrefix(strings.TrimSpace(text), "test: ")
	if !isTest {
		return nil
	}
	first, body, _ := strings.Cut(text, "\n")
	name, argument, _ := strings.Cut(first, " ")
	if !known[name] {
		return fmt.Errorf("there is no mark %q", name)
	}
	switch name {
	case "run":
		r.page.Steps = append(r.page.Steps, Step{Page: r.page.Name, Line: at, Text: argument + "\n" + body, Hidden: true})
	case "page":
		name, argument, _ := strings.Cut(argument, " ")
		r.page.Marks = append(r.page.Marks, Mark{name, argument})
	default:
		r.marks = append(r.marks, Mark{name, strings.Join(strings.Fields(argument+" "+body), " ")})
	}
	return nil
}

// anchor notes a heading: lower case, without punctuation, with dashes for spaces, and a number for
// one that was there before.
func (r *reader) anchor(title string) {
	title = linkText.ReplaceAllString(title, "$1")
	slug := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
	count := r.seen[slug]
	r.seen[slug]++
	if count > 0 {
		slug = fmt.Sprintf("%s-%d", slug, count)
	}
	r.page.Anchors[slug] = true
}

var (
	dropped  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	inline   = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
)

// links are the links in prose, without what stands in inline code.
func links(prose string) []Link {
	prose = inline.ReplaceAllStringFunc(prose, func(code string) string { return strings.Repeat("x", len(code)) })
	var found []Link
	for _, at := range link.FindAllStringSubmatchIndex(prose, -1) {
		found = append(found, Link{Line: 1 + strings.Count(prose[:at[0]], "\n"), Target: prose[at[2]:at[3]]})
	}
	return found
}

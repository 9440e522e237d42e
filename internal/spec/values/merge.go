// SPDX-License-Identifier: Apache-2.0

package values

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/strvals"

	"github.com/satchel-dev/satchel/internal/convert/helm/document"
)

// Source is the content of one reference of spec.helm.valuesFrom.
type Source struct {
	// Where names the origin in messages: "secret shop/db, key password".
	Where string
	// Content of the key, unless it is Missing.
	Content string
	Missing bool
	// TargetPath is where the content is set as a single value; "" if it is a document.
	TargetPath string
}

// Merge merges the sources in their order, later ones over earlier ones, and inline values over all of them: mappings are
// merged, everything else is replaced. The arguments are not changed. All problems are listed in an *Error.
func Merge(sources []Source, inline map[string]any) (map[string]any, error) {
	merged := map[string]any{}
	var problems []string
	room := document.NewBudget() // aliases multiply what a Secret holds
	for _, source := range sources {
		var problem string
		if merged, problem = source.over(merged, room); problem != "" {
			problems = append(problems, source.Where+": "+problem)
		}
	}
	if len(problems) > 0 {
		return nil, &Error{Problems: problems}
	}
	return document.Over(merged, inline), nil
}

// over merges a source over values, and returns its problem.
func (s Source) over(values map[string]any, room *document.Budget) (map[string]any, string) {
	switch {
	case s.Missing:
		return values, ""
	case s.TargetPath != "":
		if problem := set(values, s.TargetPath, s.Content); problem != "" {
			return values, problem
		}
		return values, ""
	}
	read, problem := room.Read([]byte(s.Content))
	if problem != "" {
		return values, problem
	}
	return document.Over(values, read), ""
}

// set sets one value at a path, as helm --set does, and returns its problem, without the parser's message, which quotes the
// value.
func set(values map[string]any, path, content string) string {
	parse := strvals.ParseInto
	for _, quote := range []string{`'`, `"`} {
		if len(content) > 1 && strings.HasPrefix(content, quote) && strings.HasSuffix(content, quote) {
			parse, content = strvals.ParseIntoString, content[1:len(content)-1]
			break
		}
	}
	if severalIn(content) {
		return fmt.Sprintf("it cannot be put at the path %s: it is one value, and a comma in it has no backslash before it; put values with any characters into a YAML document", path)
	}
	if problem := indexesOf(path); problem != "" {
		return problem
	}
	if strings.Count(path, ".") >= strvals.MaxNestedNameLevel {
		return fmt.Sprintf("the path %s has more than %d levels", path, strvals.MaxNestedNameLevel)
	}
	if err := parse(path+"="+content, values); err != nil {
		return fmt.Sprintf("it cannot be put at the path %s: either another source has a value other than a mapping or a list on the path, "+
			`or a comma or a brace in it has no backslash before it; put values with any characters into a YAML document`, path)
	}
	return ""
}

// severalIn tells whether that parser would read more than one assignment from a content: it has a comma that is neither
// escaped nor in a list in braces.
func severalIn(content string) bool {
	list := strings.HasPrefix(content, "{")
	for i := 0; i < len(content); i++ {
		switch {
		case content[i] == '\\':
			i++
		case content[i] == '}':
			list = false
		case content[i] == ',' && !list:
			return true
		}
	}
	return false
}

// The parser allocates a list of the length of an index.
const mostIndex, mostIndexes = 1000, 3

var indexIn = regexp.MustCompile(`\[(\d+)\]`)

// indexesOf returns the problem of the indexes of a path.
func indexesOf(path string) string {
	found := indexIn.FindAllStringSubmatch(path, -1)
	if len(found) > mostIndexes {
		return fmt.Sprintf("the path %s has more than %d indexes", path, mostIndexes)
	}
	for _, index := range found {
		if n, err := strconv.Atoi(index[1]); err != nil || n > mostIndex {
			return fmt.Sprintf("the path %s has an index above %d", path, mostIndex)
		}
	}
	return ""
}

// Set applies the flag --set of a command to values: path=value, several of them separated by commas.
func Set(values map[string]any, expression string) error {
	if err := strvals.ParseInto(expression, values); err != nil {
		return &Error{Problems: []string{"--set " + expression + ": " + err.Error()}}
	}
	return nil
}

// Error lists the problems of values, one line for each source.
type Error struct{ Problems []string }

func (e *Error) Error() string { return strings.Join(e.Problems, "\n") }

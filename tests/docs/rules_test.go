// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// registryV1Rule is an id of a rule as the code of the converter writes it: in a problem, or in parentheses in a comment.
var registryV1Rule = regexp.MustCompile(`(?:"|\()((?:[PCVNOSRAKDW])\d{1,2})(?:"|\)| to |, )`)

// TestRegistryV1Rules: the code names rules that docs/dev/registryv1-rules.md has.
func TestRegistryV1Rules(t *testing.T) {
	page, err := os.ReadFile("../../docs/dev/registryv1-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([A-Z]\d{1,2}) \| .* \|$`).FindAllStringSubmatch(string(page), -1) {
		if listed[row[1]] {
			t.Errorf("the page has two rows for %s", row[1])
		}
		listed[row[1]] = true
	}
	named := map[string]bool{}
	err = filepath.WalkDir("../../internal/convert/registryv1", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".go" {
			return err
		}
		code, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, found := range registryV1Rule.FindAllStringSubmatch(string(code), -1) {
			named[found[1]] = true
			if !listed[found[1]] {
				t.Errorf("%s names rule %s, which docs/dev/registryv1-rules.md does not list", file, found[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(listed) < 70 || len(named) < 40 {
		t.Fatalf("%d rules in the page, %d in the code", len(listed), len(named))
	}
}

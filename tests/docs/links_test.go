// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/tests/docs/markdown"
	"github.com/satchel-dev/satchel/tests/installation"
)

// TestLinks follows every link of every page: to files, and to the anchors in them. Of addresses only the
// shape is looked at.
func TestLinks(t *testing.T) {
	all := pages(t)
	count := 0
	for name, page := range all {
		for _, link := range page.Links {
			count++
			if err := follow(all, name, link.Target); err != nil {
				t.Errorf("%s:%d: the link to %s: %v", name, link.Line, link.Target, err)
			}
		}
	}
	if count < 250 {
		t.Errorf("only %d links were found", count)
	}
	t.Logf("%d links of %d pages", count, len(all))
}

// follow looks whether there is what a link of a page leads to.
func follow(all map[string]markdown.Page, from, target string) error {
	address, err := url.Parse(target)
	if err != nil {
		return err
	}
	switch {
	case address.Scheme == "https" && strings.Contains(address.Host, "."):
		return nil
	case address.Scheme != "" || address.Host != "" || strings.HasPrefix(target, "/"):
		return fmt.Errorf("write an https address, or a path from this page")
	}
	to := from
	if address.Path != "" {
		to = path.Join(path.Dir(from), address.Path)
		if strings.HasPrefix(to, "..") {
			return fmt.Errorf("it leaves the repository")
		}
		if _, err := os.Stat(filepath.Join(installation.Root(), to)); err != nil {
			return fmt.Errorf("there is no %s", to)
		}
	}
	if address.Fragment == "" {
		return nil
	}
	if page, found := all[to]; !found || !page.Anchors[address.Fragment] {
		return fmt.Errorf("%s has no heading #%s", to, address.Fragment)
	}
	return nil
}

// TestEveryPageIsReached wants a way by links from README to each page of docs.
func TestEveryPageIsReached(t *testing.T) {
	all := pages(t)
	reached, waiting := map[string]bool{"README.md": true}, []string{"README.md"}
	for len(waiting) > 0 {
		from := waiting[0]
		waiting = waiting[1:]
		for _, link := range all[from].Links {
			target, _, _ := strings.Cut(link.Target, "#")
			to := path.Join(path.Dir(from), target)
			if _, isFolder := all[to+"/README.md"]; isFolder {
				to += "/README.md"
			}
			if _, isPage := all[to]; isPage && !reached[to] {
				reached[to], waiting = true, append(waiting, to)
			}
		}
	}
	for name := range all {
		if strings.HasPrefix(name, "docs/") && !reached[name] {
			t.Errorf("no links lead from README.md to %s", name)
		}
	}
}

// TestFollow shows that broken links are seen.
func TestFollow(t *testing.T) {
	all := map[string]markdown.Page{
		"README.md":    {Anchors: map[string]bool{"try-it": true}},
		"docs/page.md": {},
	}
	for name, tc := range map[string]struct {
		reason, target string
		broken         bool
	}{
		"address":        {"other servers are not asked", "https://example.org/x#y", false},
		"plain http":     {"addresses are https", "http://example.org", true},
		"file":           {"relative to the page", "../go.mod", false},
		"no file":        {"it was renamed", "../go.mode", true},
		"absolute":       {"it means something else on the web", "/go.mod", true},
		"outside":        {"it is not on the web", "../../x", true},
		"anchor":         {"of another page", "../README.md#try-it", false},
		"no anchor":      {"the heading was changed", "../README.md#tryit", true},
		"no anchor here": {"of the page itself", "#fields", true},
		"of no page":     {"files have no headings", "../go.mod#fields", true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := follow(all, "docs/page.md", tc.target); (err != nil) != tc.broken {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package resolver_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/catalog/fbc"
	"github.com/satchel-dev/satchel/internal/resolver"
)

// recorded is one line of the corpus: catalogs, and queries with the answers of OLM v1's resolver.
type recorded struct {
	ID       int `json:"id"`
	Catalogs []struct {
		Name     string            `json:"name"`
		Priority int32             `json:"priority"`
		FBC      []json.RawMessage `json:"fbc"`
	} `json:"catalogs"`
	Queries []struct {
		Package       string   `json:"package"`
		Version       string   `json:"version"`
		Channels      []string `json:"channels"`
		SelfCertified bool     `json:"selfCertified"`
		Installed     *struct {
			Bundle  string `json:"bundle"`
			Version string `json:"version"`
		} `json:"installed"`
		Answer struct {
			Image   string `json:"image"`
			Version string `json:"version"`
			Error   string `json:"error"`
		} `json:"answer"`
	} `json:"queries"`
}

// corpus calls a function with each line of the recorded cases.
func corpus(t *testing.T, each func(recorded)) {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "..", "shared", "corpus", "catalog", "resolver-cases.jsonl.gz"))
	if err != nil {
		t.Skip("the recorded answers of OLM v1 are not beside the repository (../shared/corpus/catalog), so nothing is compared with them")
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var line recorded
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		each(line)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestC1AnswersOfOLMv1 wants image, version and refusal equal for each recorded query, with dependencies not refused.
// R12 is on, as everywhere in the product: no recorded catalog names an image by digest, so it cannot count.
func TestC1AnswersOfOLMv1(t *testing.T) {
	for name, refuseMirrors := range map[string]bool{"as OLM v1": true, "with R12": false} {
		t.Run(name, func(t *testing.T) {
			queries, resolved := 0, 0
			corpus(t, func(line recorded) {
				for i, q := range line.Queries {
					queries++
					query := resolver.Query{Package: q.Package, Range: q.Version, Channels: q.Channels, RefuseMirrors: refuseMirrors}
					if q.SelfCertified {
						query.UpgradePolicy, query.Downgrade = resolver.SelfCertified, resolver.DowngradeAllow
					}
					if q.Installed != nil {
						query.Installed = &resolver.Installed{Bundle: q.Installed.Bundle, Version: q.Installed.Version}
					}
					got, err := resolver.Resolve(query, line.load(t, q.Package))
					text := ""
					if err != nil {
						text = err.Error()
					} else {
						resolved++
					}
					if got.Image != q.Answer.Image || got.Version != q.Answer.Version || text != q.Answer.Error {
						t.Errorf("line %d, query %d: got %q %q %q, want %q %q %q", line.ID, i,
							got.Image, got.Version, text, q.Answer.Image, q.Answer.Version, q.Answer.Error)
					}
				}
			})
			if queries != 4000 || resolved < 1000 {
				t.Errorf("got %d queries with %d bundles, want 4000 with more than 1000", queries, resolved)
			}
		})
	}
}

// load reads the catalogs of a line as the command does.
func (line recorded) load(t *testing.T, name string) []resolver.Catalog {
	t.Helper()
	var catalogs []resolver.Catalog
	for _, c := range line.Catalogs {
		var text []byte
		for _, blob := range c.FBC {
			text = fmt.Appendf(text, "%s\n", blob)
		}
		read, err := fbc.ReadPackage(fstest.MapFS{"catalog.json": {Data: text}}, ".", name, fbc.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		catalogs = append(catalogs, resolver.Catalog{Name: c.Name, Priority: c.Priority, Package: read.Package, Problem: read.Problem})
	}
	return catalogs
}

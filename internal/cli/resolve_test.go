// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// catalogFiles writes catalogs, goes where they are, and returns where the test was.
func catalogFiles(t *testing.T) string {
	t.Helper()
	before, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	shop, err := os.ReadFile(filepath.Join("testdata", "resolve", "shop.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	bad := `{"schema":"olm.channel","package":"shop","name":"a","entries":7}{"schema":"olm.package","name":"shopping"}{"name":"stray"}`
	t.Chdir(writeFiles(t, map[string]string{
		"community/shop.yaml": string(shop), "community/README.md": "# Hello", "community/.indexignore": "*.md",
		"mirror,eu.yaml": string(shop), "bad.json": bad, "other.yaml": "schema: olm.package\nname: shipping",
		"empty/.indexignore": "", "broken.json": `{"schema": "olm.package"`,
		"steering.json": `{"schema":"olm.bundle","package":"p","name":` + quotedJSON(t, "b"+steering+"\nc") + `,"image":` + quotedJSON(t, steering) + `,` +
			`"properties":[{"type":"olm.package","value":{"version":"1.0.0"}}]}{"schema":"olm.deprecations","package":"p",` +
			`"entries":[{"reference":{"schema":"olm.package"},"message":` + quotedJSON(t, steering) + `}]}`,
	}))
	return before
}

// quotedJSON is a string as a JSON literal.
func quotedJSON(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestResolve(t *testing.T) {
	before := catalogFiles(t)
	const community = "--catalog=community=community"
	var text strings.Builder
	for _, line := range [][]string{
		{"shop", community},
		{"shop", community, "-o", "json"},
		{"shop", community, "-o", "yaml", "--version", "~1.0"},
		{"shop", community, "--channel", "stable", "--channel", "zz"},
		{"shop", community, "--channel", "stable", "-o", "json"},
		{"shop", community, "--installed", "shop.v1.0.0@1.0.0", "--version", "<3"},
		{"shop", community, "--installed", "shop.v1.0.0@1.0.0", "--version", ">=2.5"},
		{"shop", community, "--installed", "shop.v1.0.0@1.0.0", "--version", "2.x", "--upgrade-policy", "SelfCertified"},
		{"shop", community, "--catalog", "mirror=mirror,eu.yaml", "--catalog", "z=other.yaml"},
		{"shop", community, "--catalog", "mirror=mirror,eu.yaml,priority=-1"},
		{"shop", community, "--catalog", "a=mirror,eu.yaml,priority=2147483647"},
		{"steered", "--catalog=p=steering.json"},
		{"p", "--catalog=p=steering.json"},

		{"shop", community, "--version", "2.x", "--channel", "stable"},
		{"shop", community, "--version", "2.x", "--installed", "shop.v1.0.0@1.0.0"},
		{"shop", community, "--version", "1.x", "--installed", "shop.v2.0.0@2.0.0+3", "--upgrade-policy", "SelfCertified", "-o", "json"},
		{"shop", community, "--version", "latest", "-o", "json"},
		{"shop", community, "--installed", "shop.v1@1"},
		{"shop", community, "--installed", "shop.v1@"},
		{"shopp", community, "--catalog=other=other.yaml"},
		{"shop", "--catalog=empty=empty"},
		{"shop", community, "--catalog=bad=bad.json"},
		{"shop", "--catalog=missing=missing"},
		{"shop", "--catalog=broken=broken.json"},

		{community},
		{"shop", "shipping", community},
		{"shop"},
		{"shop", "--catalog=community"},
		{"shop", "--catalog==community"},
		{"shop", "--catalog=a="},
		{"shop", "--catalog=a=b,priority=high"},
		{"shop", "--catalog=a=b,priority=2147483648"},
		{"shop", community, "--catalog=community=empty"},
		{"shop", community, "--installed", "shop.v1.0.0"},
		{"shop", community, "--installed", "@1.0.0"},
		{"shop", community, "--upgrade-policy", "None"},
	} {
		got := satchel(t, append([]string{"resolve"}, line...)...)
		if hidden := hiddenIn(got.Out + got.Err); hidden != "" {
			t.Errorf("%q shows %s", line, hidden)
		}
		fmt.Fprintf(&text, "# resolve %s\n%s\n", strings.Join(line, " "), got)
	}
	t.Chdir(before)
	golden(t, "resolve/outputs", text.String())
}

// TestResolveOutputIsStable has the keys and the exit codes on which scripts depend.
func TestResolveOutputIsStable(t *testing.T) {
	catalogFiles(t)
	got := satchel(t, "resolve", "shop", "--version", "2.x", "--catalog", "community=community", "-o", "json")
	var value map[string]string
	if err := json.Unmarshal([]byte(got.Out), &value); err != nil || got.Code != 0 || got.Err != "" {
		t.Fatalf("%v: %s", err, got)
	}
	want := map[string]string{"bundle": "shop.v2.0.0", "version": "2.0.0", "image": "registry.example.org/shop@sha256:2", "catalog": "community"}
	if fmt.Sprint(value) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", value, want)
	}
	got = satchel(t, "resolve", "shop", "--version", "2.x", "--catalog", "community=community", "-o", "yaml")
	var same map[string]string
	if err := yaml.Unmarshal([]byte(got.Out), &same); err != nil || fmt.Sprint(same) != fmt.Sprint(want) {
		t.Errorf("YAML: %v: %s", err, got)
	}
	got = satchel(t, "resolve", "shop", "--version", "7.x", "--catalog", "community=community", "-o", "json")
	if first, _, _ := strings.Cut(got.Err, "\n"); first != `no bundles found for package "shop" matching version "7.x"` || got.Code != 2 || got.Out != "" {
		t.Errorf("a refusal: got %s", got)
	}
}

// TestC1ThroughTheCommand asks recorded queries of the command, with what a user can give.
func TestC1ThroughTheCommand(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "..", "..", "shared", "corpus", "catalog", "resolver-cases.jsonl.gz"))
	if err != nil {
		t.Skip("the recorded answers of OLM v1 are not beside the repository (../shared/corpus/catalog), so nothing is compared with them")
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	every := 20
	if os.Getenv("SATCHEL_FULL") != "" {
		every = 1
	}
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 16<<20)
	asked := 0
	for number := 0; lines.Scan(); number++ {
		if number%every == 0 {
			asked += askRecorded(t, lines.Bytes())
		}
	}
	if err := lines.Err(); err != nil || asked != 4000/every {
		t.Errorf("%v: %d queries", err, asked)
	}
}

// askRecorded runs the command for each query of a line, and returns how many these are.
func askRecorded(t *testing.T, line []byte) int {
	t.Helper()
	var recorded struct {
		ID       int
		Catalogs []struct {
			Name     string
			Priority int
			FBC      []json.RawMessage
		}
		Queries []struct {
			Package, Version string
			Channels         []string
			SelfCertified    bool
			Installed        *struct{ Bundle, Version string }
			Answer           struct{ Image, Version, Error string }
		}
	}
	if err := json.Unmarshal(line, &recorded); err != nil {
		t.Fatal(err)
	}
	var catalogs []string
	dir := t.TempDir()
	for _, c := range recorded.Catalogs {
		var text []byte
		for _, blob := range c.FBC {
			text = fmt.Appendf(text, "%s\n", blob)
		}
		path := filepath.Join(dir, c.Name+".json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		catalogs = append(catalogs, "--catalog", fmt.Sprintf("%s=%s,priority=%d", c.Name, path, c.Priority))
	}
	for i, q := range recorded.Queries {
		args := append([]string{"resolve", q.Package, "--version", q.Version, "-o", "json"}, catalogs...)
		for _, c := range q.Channels {
			args = append(args, "--channel", c)
		}
		if q.SelfCertified {
			args = append(args, "--upgrade-policy", "SelfCertified", "--downgrade", "Allow")
		}
		if q.Installed != nil {
			args = append(args, "--installed", q.Installed.Bundle+"@"+q.Installed.Version)
		}
		got := satchel(t, args...)
		var value struct{ Image, Version string }
		refusal, code := "", 0
		if q.Answer.Error != "" {
			refusal, _, _ = strings.Cut(got.Err, "\n")
			code = 2
		} else if err := json.Unmarshal([]byte(got.Out), &value); err != nil {
			t.Errorf("line %d, query %d: %v: %s", recorded.ID, i, err, got)
		}
		if got.Code != code || refusal != q.Answer.Error || value.Image != q.Answer.Image || value.Version != q.Answer.Version {
			t.Errorf("line %d, query %d: got %s, want %+v", recorded.ID, i, got, q.Answer)
		}
	}
	return len(recorded.Queries)
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shopCatalog writes catalogs, goes where they are, and returns where the test was.
func shopCatalog(t *testing.T) string {
	t.Helper()
	before, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	shop, err := os.ReadFile(filepath.Join("testdata", "catalog", "shop.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	name := quotedJSON(t, "b\"<"+steering+"\n]c")
	t.Chdir(writeFiles(t, map[string]string{
		"shop/shop.yaml": string(shop), "mirror.yaml": string(shop), "other.yaml": "schema: olm.package\nname: shipping",
		"bad.yaml": strings.NewReplacer("defaultChannel: stable", "defaultChannel: fast", "replaces: shop.v1.2.0, ", "",
			">=1.1.0 <1.2.0", "new", "name: shop.v3.0.0-rc.1\nimage", "name: shop.v3\nimage").Replace(string(shop)),
		"twice.json": `{"schema":"olm.channel","package":"p","name":"a","entries":[{"name":"b","replaces":"c"}]}` +
			`{"schema":"olm.channel","package":"p","name":"a","entries":[{"name":"c"}]}`,
		"broken.json":   `{"schema": "olm.package"`,
		"unusable.json": `{"schema":"olm.channel","package":"shop","name":"a","entries":7}`,
		"steering.json": `{"schema":"olm.package","name":"p","defaultChannel":` + name + `}{"schema":"olm.bundle","package":"p","name":` + name + `,"image":` + name +
			`,"properties":[{"type":"olm.package","value":{"version":"1.0.0"}}]}{"schema":"olm.channel","package":"p","name":` + name +
			`,"entries":[{"name":` + name + `,"replaces":"old","skipRange":` + name + `}]}{"schema":"olm.deprecations","package":"p",` +
			`"entries":[{"reference":{"schema":"olm.bundle","name":` + name + `},"message":` + name + `}]}`,
	}))
	return before
}

// catalogOutputs runs lines of one command and compares what they print.
func catalogOutputs(t *testing.T, command string, lines [][]string) {
	t.Helper()
	before := shopCatalog(t)
	var text strings.Builder
	for _, line := range lines {
		got := satchel(t, append([]string{"catalog", command}, line...)...)
		if hidden := hiddenIn(got.Out + got.Err); hidden != "" {
			t.Errorf("%q shows %s", line, hidden)
		}
		fmt.Fprintf(&text, "# catalog %s %s\n%s\n", command, strings.Join(line, " "), got)
	}
	t.Chdir(before)
	golden(t, "catalog/"+command, text.String())
}

const shopFlag = "--catalog=community=shop"

func TestCatalogChannels(t *testing.T) {
	catalogOutputs(t, "channels", [][]string{
		{"shop", shopFlag},
		{"shop", shopFlag, "-o", "json"},
		{"shop", shopFlag, "-o", "yaml", "--catalog=mirror=mirror.yaml,priority=1"},
		{"p", "--catalog=p=steering.json"},
		{"p", "--catalog=twice=twice.json"},
		{"shipping", "--catalog=other=other.yaml"},
		{"shipping", "--catalog=other=other.yaml", "-o", "json"},

		{"shopp", shopFlag, "--catalog=other=other.yaml"},
		{"shop", shopFlag, "--catalog=mirror=mirror.yaml"},
		{"shop", shopFlag, "--catalog=unusable=unusable.json"},
		{"shop", "--catalog=broken=broken.json"},
		{"shop"},
		{shopFlag},
		{"shop", "shipping", shopFlag},
		{"shop", shopFlag, "-o", "dot"},
	})
}

func TestCatalogGraph(t *testing.T) {
	catalogOutputs(t, "graph", [][]string{
		{"shop", shopFlag},
		{"shop", shopFlag, "--channel", "candidate"},
		{"shop", shopFlag, "--from", "1.0.0", "--to", "2.0.0"},
		{"shop", shopFlag, "--from", "1.0.0", "--to", "2.0.0", "-o", "mermaid"},
		{"shop", shopFlag, "--from", "1.0.0", "--to", "2.0.0", "-o", "dot"},
		{"shop", shopFlag, "--from", "1.0.0", "--to", "2.0.0", "-o", "json"},
		{"shop", shopFlag, "--from", "shop.v1.2.0", "-o", "yaml"},
		{"shop", shopFlag, "--from", "1.0.0"},
		{"shop", shopFlag, "--from", "1.2.0", "--channel", "stable"},
		{"shop", shopFlag, "--from", "shop.v1.1.5@1.1.5", "--channel", "stable", "--to", "shop.v2.0.0"},
		{"shop", shopFlag, "--from", "2.0.0", "--to", "1.0.0"},
		{"p", "--catalog=p=steering.json"},
		{"p", "--catalog=p=steering.json", "-o", "mermaid"},
		{"p", "--catalog=p=steering.json", "-o", "dot"},
		{"p", "--catalog=p=steering.json", "-o", "json"},

		{"shop", shopFlag, "--to", "2.0.0"},
		{"shop", shopFlag, "--from", "9.9.9"},
		{"shop", shopFlag, "--from", "1.0.0", "--to", "9.9.9"},
		{"shop", shopFlag, "--from", "shop.v1@1"},
		{"shop", shopFlag, "--channel", "slow"},
		{"shopp", shopFlag},
	})
}

func TestCatalogValidate(t *testing.T) {
	catalogOutputs(t, "validate", [][]string{
		{"shop"},
		{"mirror.yaml", "-o", "json"},
		{"bad.yaml"},
		{"bad.yaml", "-o", "yaml"},
		{"steering.json"},
		{"steering.json", "-o", "json"},
		{"broken.json"},
		{"missing"},
		{},
		{"shop", "mirror.yaml"},
	})
}

func TestCatalogShow(t *testing.T) {
	catalogOutputs(t, "show", [][]string{
		{"shop", shopFlag},
		{"shop", "2.0.0", shopFlag},
		{"shop", "shop.v1.1.0", shopFlag, "-o", "json"},
		{"shop", shopFlag, "-o", "yaml"},
		{"p", "--catalog=p=steering.json"},
		{"shipping", "--catalog=other=other.yaml"},

		{"shop", "9.9.9", shopFlag},
		{"shopp", shopFlag},
		{shopFlag},
		{"shop", "1.0.0", "2.0.0", shopFlag},
		{"shop"},
	})
}

func TestCatalogSearch(t *testing.T) {
	catalogOutputs(t, "search", [][]string{
		{"SH", shopFlag, "--catalog=other=other.yaml", "--catalog=mirror=mirror.yaml"},
		{"ship", shopFlag, "--catalog=other=other.yaml", "-o", "json"},
		{"--catalog=other=other.yaml", "-o", "yaml"},

		{"zz", shopFlag},
		{"zz", shopFlag, "-o", "json"},
		{"shop"},
		{"shop", "shipping", shopFlag},
		{"shop", "--catalog=broken=broken.json"},
	})
}

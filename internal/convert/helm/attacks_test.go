// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// says is what is said about a chart.
func says(t testing.TB, files fstest.MapFS, o helm.Options) string {
	t.Helper()
	return saysWithin(t, files, o, noLimits)
}

func saysWithin(t testing.TB, files fstest.MapFS, o helm.Options, limits manifest.Limits) string {
	t.Helper()
	_, problems := helm.Convert(files, "", "ns", o, limits)
	lines := make([]string, 0, len(problems))
	for _, p := range problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// tarred packages files, each under the name given.
func tarred(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var data bytes.Buffer
	compressed := gzip.NewWriter(&data)
	writer := tar.NewWriter(compressed)
	for _, h := range headers {
		content := h.Xattrs["content"] //nolint:staticcheck // a place for the content of the file
		h.Xattrs = nil                 //nolint:staticcheck // likewise
		h.Mode = 0o644
		if h.Size == 0 {
			h.Size = int64(len(content))
		}
		if err := writer.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func entry(name, content string) *tar.Header {
	return &tar.Header{Name: name, Typeflag: tar.TypeReg, Xattrs: map[string]string{"content": content}} //nolint:staticcheck // see tarred
}

const (
	aChart = "apiVersion: v2\nname: app\nversion: 1.0.0\n"
	aMap   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"
)

// TestPackages: a package is read from memory, and refused where it is not what helm package makes.
func TestPackages(t *testing.T) {
	good := []*tar.Header{entry("app/Chart.yaml", aChart), entry("app/templates/a.yaml", aMap)}
	inner := func() []byte {
		return tarred(t, entry("sub/Chart.yaml", strings.Replace(aChart, "app", "sub", 1)), entry("sub/templates/a.yaml", strings.Replace(aMap, "}}}", "}}-sub}", 1)))
	}
	nested := inner()
	for range 10 {
		nested = tarred(t, entry("sub/Chart.yaml", strings.Replace(aChart, "app", "sub", 1)), entry("sub/charts/sub.tgz", string(nested)))
	}
	for name, c := range map[string]struct {
		headers []*tar.Header
		says    string
	}{
		"good":           {good, ""},
		"charts within":  {append(good[:2:2], entry("app/charts/sub-1.0.0.tgz", string(inner()))), ""},
		"deep":           {append(good[:2:2], entry("app/charts/sub.tgz", string(nested))), "lie within one another more than 5 times"},
		"no chart":       {[]*tar.Header{entry("app/templates/a.yaml", aMap)}, "its folder holds no Chart.yaml"},
		"no folder":      {[]*tar.Header{entry("Chart.yaml", aChart)}, `holds "Chart.yaml", which is not in the folder of the chart`},
		"climbing":       {append(good[:2:2], entry("app/../../x", "")), "not in the folder"},
		"absolute":       {append(good[:2:2], entry("/etc/passwd", "")), "not in the folder"},
		"backslash":      {append(good[:2:2], entry(`app/a\b`, "")), "not in the folder"},
		"drive":          {append(good[:2:2], entry(`app/c:/x`, "")), "not in the folder"},
		"twice":          {append(good[:2:2], entry("app/x", ""), entry("other/x", "")), "holds this file twice"},
		"link":           {append(good[:2:2], &tar.Header{Name: "app/Chart.lock", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), "Chart.lock: this is a link"},
		"hard link":      {append(good[:2:2], &tar.Header{Name: "app/x", Typeflag: tar.TypeLink, Linkname: "app/Chart.yaml"}), "app/x: this is a link"},
		"large":          {append(good[:2:2], entry("app/x", strings.Repeat("\x00", 6<<20))), "larger than 5242880 bytes"},
		"large in all":   {append(good[:2:2], entry("app/x", strings.Repeat("\x00", 5<<20)), entry("app/y", strings.Repeat("\x00", 5<<20)), entry("app/z", strings.Repeat("\x00", 5<<20)), entry("app/u", strings.Repeat("\x00", 5<<20))), "larger than 16777216 bytes in all"},
		"large, within":  {append(good[:2:2], entry("app/charts/sub.tgz", string(tarred(t, entry("sub/x", strings.Repeat("\x00", 5<<20)), entry("sub/y", strings.Repeat("\x00", 5<<20)), entry("sub/z", strings.Repeat("\x00", 5<<20)), entry("sub/u", strings.Repeat("\x00", 5<<20)))))), "larger than 16777216 bytes in all"},
		"many":           {append(good[:2:2], many(10_001)...), "more than 10000 files"},
		"no gzip within": {append(good[:2:2], entry("app/charts/sub.tgz", "hello")), "charts/sub.tgz: this is no package of a chart: it is not compressed by gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			copied := make([]*tar.Header, 0, len(c.headers))
			for _, h := range c.headers {
				again := *h
				copied = append(copied, &again)
			}
			said := says(t, fstest.MapFS{"app-1.0.0.tgz": {Data: tarred(t, copied...)}}, helm.Options{})
			if !strings.Contains(said, c.says) || c.says == "" && said != "" {
				t.Errorf("said %.300q, want %q", said, c.says)
			}
		})
	}
}

func many(n int) []*tar.Header {
	var all []*tar.Header
	for i := range n {
		all = append(all, entry(fmt.Sprintf("app/f%d", i), ""))
	}
	return all
}

// TestDamagedPackages: one that is cut short, or followed by something, is refused.
func TestDamagedPackages(t *testing.T) {
	whole := tarred(t, entry("app/Chart.yaml", aChart), entry("app/templates/a.yaml", aMap))
	for _, data := range [][]byte{whole[:len(whole)-6], whole[:len(whole)/2], append(bytes.Clone(whole), "garbage"...), nil, []byte("hello")} {
		if said := says(t, fstest.MapFS{"app-1.0.0.tgz": {Data: data}}, helm.Options{}); !strings.Contains(said, "no package of a chart") {
			t.Errorf("said %q", said)
		}
	}
}

// noLimits are the default ones.
var noLimits = manifest.Limits{}

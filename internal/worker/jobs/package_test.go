// SPDX-License-Identifier: Apache-2.0

package jobs_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/artifact/packages"
	"github.com/satchel-dev/satchel/internal/catalog/lean"
	"github.com/satchel-dev/satchel/internal/resolver"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// largePackage is the blobs of a package of about so many bytes: bundles in channels of 1,000, each bundle with properties that
// resolution does not read.
func largePackage(size, ignored int) []byte {
	var text bytes.Buffer
	property := fmt.Sprintf(`{"type":"example.org/ignored","value":{"text":%q}}`, strings.Repeat("x", ignored))
	for i := 0; text.Len() < size; i++ {
		if i%1000 == 0 {
			fmt.Fprintf(&text, `{"schema":"olm.channel","package":"shop","name":"c%d","entries":[`, i)
			for j := range 1000 {
				fmt.Fprintf(&text, `{"name":"shop.v1.0.%d","replaces":"shop.v1.0.%d"},`, i+j+1, i+j)
			}
			text.Truncate(text.Len() - 1)
			text.WriteString("]}\n")
		}
		fmt.Fprintf(&text, `{"schema":"olm.bundle","package":"shop","name":"shop.v1.0.%d","image":"e.org/s:%d","properties":[{"type":"olm.package","value":{"packageName":"shop","version":"1.0.%d"}},%s]}`+"\n", i, i, i, property)
	}
	return text.Bytes()
}

// TestM41PackagesAreParsedInWorkers: what the process itself does for a package near the limit takes little time and memory, for the
// first resolution and for each later one. A package with more than resolution goes through at once is left out.
func TestM41PackagesAreParsedInWorkers(t *testing.T) {
	for name, c := range map[string]struct {
		blobs   []byte
		leftOut string
	}{
		"12 MB":                       {largePackage(12<<20, 1000), ""},
		"31 MB":                       {largePackage(31<<20, 3000), ""},
		"31 MB that resolution reads": {largePackage(31<<20, 10), "more than 2097152"},
		"as much as resolution reads": {largePackage(2_800_000, 10), ""},
		"many empty entries":          {[]byte(`{"schema":"olm.channel","package":"shop","name":"c","entries":[` + strings.Repeat("{},", 5_000_000) + "{}]}\n"), "MiB memory"},
		"a value of great depth":      {[]byte(`{"schema":"olm.bundle","package":"shop","name":"b","properties":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + "}\n"), "wrong type"},
		"blobs of other schemas":      {[]byte(`{"schema":"other","package":"shop","value":"` + strings.Repeat("x", 8<<20) + `"}` + "\n"), ""},
		"many deprecations":           {bytes.Repeat([]byte(`{"schema":"olm.deprecations","package":"shop","entries":[{"reference":{"schema":"olm.bundle","name":"a"},"message":"m"}]}`+"\n"), 30<<13), ""},
	} {
		t.Run(name, func(t *testing.T) {
			pool := newPool(t, func(*worker.Options) {})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Etag", fmt.Sprintf(`"sha256:%x"`, sha256.Sum256(c.blobs)))
				_, _ = w.Write(c.blobs)
			}))
			t.Cleanup(server.Close)
			reader, err := packages.Open(packages.Options{
				Client: server.Client(), ServerURLs: []string{server.URL}, CacheDir: t.TempDir(),
				Parse: func(ctx context.Context, namespace, name string, blobs *os.File) (lean.Parsed, error) {
					return jobs.ParsePackage(ctx, pool, namespace, name, blobs)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			of := packages.Catalog{Namespace: "team", Name: "large", BaseURL: server.URL + "/catalogs/team/large", Content: "one"}
			for i, within := range []struct {
				took      time.Duration
				allocated uint64
			}{{20 * time.Second, 32 << 20}, {100 * time.Millisecond, 16 << 20}} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				began := time.Now()
				found, err := reader.Read(t.Context(), of, "shop")
				if err != nil {
					t.Fatal(err)
				}
				if c.leftOut != "" && (found.Problem == nil || !strings.Contains(found.Problem.Error(), c.leftOut)) || c.leftOut == "" && found.Package == nil {
					t.Errorf("read %d times: %v", i+1, found.Problem)
				}
				read := time.Since(began)
				if found.Package != nil {
					_, _ = resolver.Resolve(resolver.Query{Package: "shop", Range: ">=1.0.0", Installed: &resolver.Installed{Bundle: "shop.v1.0.1", Version: "1.0.1"}},
						[]resolver.Catalog{{Name: "large", Package: found.Package}})
				}
				resolved := time.Since(began) - read
				runtime.ReadMemStats(&after)
				allocated := after.TotalAlloc - before.TotalAlloc
				t.Logf("%d: read %d bytes in %s, resolved in %s, allocated %d MiB", i+1, len(c.blobs), read, resolved, allocated>>20)
				if read > 6*within.took || resolved > 6*200*time.Millisecond || allocated > 2*within.allocated {
					t.Errorf("%d: want at most %s, 200ms and %d MiB", i+1, within.took, within.allocated>>20)
				}
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// The newest version in the range is downloaded with the digest of the index. An index that did not change costs one
// conditional request.
func TestChartOfRepository(t *testing.T) {
	r := newRepository(t)
	first := r.add(t, "/charts/app-1.2.0.tgz", "app", "1.2.0")
	r.set(`"one"`, indexOf(entryOf("1.0.0", "", "app-1.0.0.tgz"), entryOf("1.2.0", first, "app-1.2.0.tgz"), entryOf("2.0.0", "", "app-2.0.0.tgz")))
	o := r.options(t, "1.x")
	done, files, err := pull(t, o)
	if err != nil {
		t.Fatal(err)
	}
	want := fetch.Resolved{Reference: "1.2.0", Digest: "sha256:" + first, Validator: `index etag "one"`}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(files["app/Chart.yaml"], "version: 1.2.0") {
		t.Errorf("the files are %v", files)
	}
	if diff := cmp.Diff([]string{"GET /charts/index.yaml 200", "GET /charts/app-1.2.0.tgz 200"}, r.taken()); diff != "" {
		t.Error(diff)
	}

	o.Previous = done
	again, err := resolve(t, o)
	if err != nil || !again.Same(done) {
		t.Errorf("an index that did not change: %+v, %v", again, err)
	}
	if diff := cmp.Diff([]string{"GET /charts/index.yaml 304"}, r.taken()); diff != "" {
		t.Error(diff)
	}

	second := r.add(t, "/charts/app-1.10.0.tgz", "app", "1.10.0")
	r.set(`"two"`, indexOf(entryOf("1.10.0", second, "app-1.10.0.tgz"), entryOf("1.2.0", first, "app-1.2.0.tgz")))
	moved, err := resolve(t, o)
	if err != nil || moved.Same(done) || moved.Reference != "1.10.0" {
		t.Errorf("after a new version: %+v, %v", moved, err)
	}
}

func resolve(t *testing.T, o Options) (fetch.Resolved, error) {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f.Resolve(context.Background())
}

// What was resolved before is fetched again by another process, which has to read the index for the URL.
func TestFetchWithoutResolve(t *testing.T) {
	r := newRepository(t)
	digest := r.add(t, "/charts/app-1.2.0.tgz", "app", "1.2.0")
	r.set("", indexOf(entryOf("1.3.0", "", "app-1.3.0.tgz"), entryOf("1.2.0", digest, "app-1.2.0.tgz")))
	f, err := New(r.options(t, "1.x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, files, err := fetchOf(t, f, fetch.Resolved{Reference: "1.2.0", Digest: "sha256:" + digest}); err != nil || len(files) != 1 {
		t.Errorf("the version that was resolved before: %v, %v", files, err)
	}
	other := "sha256:" + strings.Repeat("0", 64)
	if _, _, err := fetchOf(t, f, fetch.Resolved{Reference: "1.2.0", Digest: other}); fetch.ReasonOf(err) != fetch.Moved {
		t.Errorf("a version with another digest now: %v", err)
	}
}

// Without a digest in the index the archive's own digest is its identity, and the server of the archive is asked whether it
// is the same.
func TestIndexWithoutDigest(t *testing.T) {
	r := newRepository(t)
	digest := r.add(t, "/charts/app-1.2.0.tgz", "app", "1.2.0")
	r.set(`"one"`, indexOf(entryOf("1.2.0", "", "app-1.2.0.tgz")))
	o := r.options(t, "")
	done, _, err := pull(t, o)
	if err != nil || done.Digest != "sha256:"+digest {
		t.Fatalf("%+v, %v", done, err)
	}
	r.taken()
	o.Previous = done
	again, err := resolve(t, o)
	if err != nil || !again.Same(done) {
		t.Errorf("the same archive: %+v, %v", again, err)
	}
	if diff := cmp.Diff([]string{"GET /charts/index.yaml 200", "HEAD /charts/app-1.2.0.tgz 200"}, r.taken()); diff != "" {
		t.Error(diff)
	}
	r.add(t, "/charts/app-1.2.0.tgz", "app", "1.2.0-replaced")
	if moved, err := resolve(t, o); err != nil || moved.Same(done) {
		t.Errorf("a replaced archive: %+v, %v", moved, err)
	}
}

// A digest in the options counts, whatever the index says.
func TestPinnedDigest(t *testing.T) {
	r := newRepository(t)
	digest := r.add(t, "/charts/app-1.2.0.tgz", "app", "1.2.0")
	r.set("", indexOf(entryOf("1.2.0", digest, "app-1.2.0.tgz")))
	o := r.options(t, "1.2.0")
	o.Digest = "sha256:" + digest
	done, files, err := pull(t, o)
	if err != nil || !done.Pinned || len(files) != 1 {
		t.Fatalf("%+v, %v, %v", done, files, err)
	}
	o.Digest = "sha256:" + strings.Repeat("0", 64)
	if _, _, err := pull(t, o); fetch.ReasonOf(err) != fetch.DigestMismatch {
		t.Errorf("another digest: %v", err)
	}
	r.set("", indexOf(entryOf("1.2.0", "", "app-1.2.0.tgz")))
	if _, _, err := pull(t, o); fetch.ReasonOf(err) != fetch.DigestMismatch {
		t.Errorf("another digest, and none in the index: %v", err)
	}
	o.Version = "1.x"
	if _, err := New(o); err == nil || !strings.Contains(err.Error(), "write the exact version") {
		t.Errorf("a digest with a range: %v", err)
	}
}

// The login goes to the server of the repository. Another server gets it only where that is asked for, and never by a
// redirect.
func TestCredentialsStayWithTheRepository(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		url    func(own, other string) string
		pass   bool
		own    []string
		other  []string
	}{
		"relative": {"the archive lies beside the index", func(string, string) string { return "app.tgz" }, false,
			[]string{"/charts/index.yaml", "/charts/app.tgz"}, nil},
		"absolute": {"the same server", func(own, _ string) string { return own + "/charts/app.tgz" }, false,
			[]string{"/charts/index.yaml", "/charts/app.tgz"}, nil},
		"other":    {"another server, and nothing said", func(_, other string) string { return other + "/app.tgz" }, false, []string{"/charts/index.yaml"}, nil},
		"passed":   {"the user says so", func(_, other string) string { return other + "/app.tgz" }, true, []string{"/charts/index.yaml"}, []string{"/app.tgz"}},
		"redirect": {"another server by a redirect", func(own, _ string) string { return own + "/away/app.tgz" }, true, []string{"/charts/index.yaml", "/away/app.tgz"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			own, other := newRepository(t), newRepository(t)
			digest := own.add(t, "/charts/app.tgz", "app", "1.0.0")
			other.add(t, "/app.tgz", "app", "1.0.0")
			redirect(own, "/away/app.tgz", other.URL+"/app.tgz")
			own.set("", indexOf(entryOf("1.0.0", digest, tc.url(own.URL, other.URL))))
			o := own.options(t, "")
			o.Login, o.PassCredentials = fetch.Login{Username: "jane", Password: "secret"}, tc.pass
			if _, _, err := pull(t, o); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.own, own.logins()); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.other, other.logins()); diff != "" {
				t.Errorf("%s: the other server: %s", tc.reason, diff)
			}
		})
	}
}

// Refusals have a reason, and say what to do.
func TestRefusals(t *testing.T) {
	zeros := strings.Repeat("0", 64)
	for name, tc := range map[string]struct {
		version, index string
		reason         fetch.Reason
		says           string
	}{
		"no chart":      {"", "entries:\n  application: []\n  nginx: []\n", fetch.NotFound, `similar names in it are "application"`},
		"no such chart": {"", "entries:\n  nginx: []\n", fetch.NotFound, "no such chart, and 1 others"},
		"no version":    {"", indexOf(), fetch.NotFound, "no version of the chart"},
		"out of range":  {">=3", indexOf(entryOf("1.0.0", "", "a"), entryOf("2.0.0", "", "a")), fetch.NotFound, `no version ">=3" of the chart: the newest of its 2 versions are 2.0.0, 1.0.0`},
		"near":          {"1.1.0", indexOf(entryOf("1.0.0", "", "a"), entryOf("1.2.0", "", "a"), entryOf("5.0.0", "", "a"), entryOf("6.0.0", "", "a")), fetch.NotFound, "the nearest of its 4 versions are 5.0.0, 1.2.0, 1.0.0"},
		"prerelease":    {"", indexOf(entryOf("1.0.0-rc.1", "", "a")), fetch.NotFound, "1.0.0-rc.1; prereleases count only where the range names one"},
		"wrong digest":  {"", indexOf(entryOf("1.0.0", zeros, "app.tgz")), fetch.DigestMismatch, "version 1.0.0 is not what the index describes"},
		"bad digest":    {"", indexOf(entryOf("1.0.0", "abc", "app.tgz")), fetch.InvalidContent, "version 1.0.0 in the index: the digest"},
		"no url":        {"", "entries:\n  app:\n  - name: app\n    version: 1.0.0\n    digest: " + zeros + "\n", fetch.InvalidContent, "no URL for version 1.0.0"},
		"registry":      {"", indexOf(entryOf("1.0.0", zeros, "oci://ghcr.io/org/app")), fetch.Refused, "use image: {reference: ghcr.io/org/app} instead of helm"},
		"private":       {"", indexOf(entryOf("1.0.0", zeros, "http://169.254.169.254/latest/meta-data")), fetch.Refused, "169.254.169.254"},
		"file":          {"", indexOf(entryOf("1.0.0", zeros, "file:///etc/passwd")), fetch.Refused, "scheme \"file\" is not supported"},
		"in the url":    {"", indexOf(entryOf("1.0.0", zeros, "https://jane:secret@example.org/a.tgz")), fetch.Refused, "has credentials in it"},
		"missing":       {"", indexOf(entryOf("1.0.0", zeros, "gone.tgz")), fetch.NotFound, "/charts/gone.tgz"},
		"redirected":    {"", indexOf(entryOf("1.0.0", zeros, "inside.tgz")), fetch.Refused, "169.254.169.254"},
		"page":          {"", "<html><body>log in</body></html>", fetch.InvalidContent, "a web page, not an index"},
		"empty":         {"", "", fetch.InvalidContent, "it is empty"},
		"not an index":  {"", "apiVersion: v1\nkind: List\n", fetch.InvalidContent, "it has no entries"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			r.add(t, "/charts/app.tgz", "app", "1.0.0")
			redirect(r, "/charts/inside.tgz", "http://169.254.169.254/latest/meta-data")
			r.set("", tc.index)
			_, files, err := pull(t, r.options(t, tc.version))
			if fetch.ReasonOf(err) != tc.reason || !strings.Contains(fmt.Sprint(err), tc.says) || len(files) > 0 {
				t.Errorf("got %s: %v", fetch.ReasonOf(err), err)
			}
			if err != nil && strings.Contains(err.Error(), "jane") {
				t.Errorf("the message has a login: %v", err)
			}
		})
	}
}

// Registries, logins in URLs and other schemes are refused before anything is asked.
func TestRefusedRepositories(t *testing.T) {
	for repository, says := range map[string]string{
		"oci://ghcr.io/org/charts":         "use image: {reference: ghcr.io/org/charts/app} instead of helm",
		"ftp://example.org/charts":         `scheme "ftp" is not supported`,
		"https://jane:secret@example.org/": "has credentials in it",
	} {
		_, err := New(Options{Repository: repository, Chart: "app", Client: client(t)})
		if fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("%s: %v", repository, err)
		}
	}
}

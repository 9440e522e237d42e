// SPDX-License-Identifier: Apache-2.0

package image

import (
	"crypto/md5"  //nolint:gosec // to be refused
	"crypto/sha1" //nolint:gosec // to be refused
	"crypto/sha512"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// TestM10Digests has one layer under digests and sizes of several kinds, as they stand in a manifest.
func TestM10Digests(t *testing.T) {
	blob := gzipped(t, packed(t, "a", "1"))
	size := fmt.Sprint(len(blob))
	right := fetch.SHA256(blob).String()
	cases := map[string]struct {
		reason, digest, size, more string
		want                       fetch.Reason
	}{
		"SHA256":    {"the usual one", right, size, "", ""},
		"SHA512":    {"the family", fmt.Sprintf("sha512:%x", sha512.Sum512(blob)), size, "", ""},
		"SHA512Bad": {"other bytes", fmt.Sprintf("sha512:%x", sha512.Sum512([]byte("x"))), size, "", fetch.DigestMismatch},
		"SHA1":      {"broken", fmt.Sprintf("sha1:%x", sha1.Sum(blob)), size, "", fetch.InvalidContent},
		"MD5":       {"broken", fmt.Sprintf("md5:%x", md5.Sum(blob)), size, "", fetch.InvalidContent},
		"Upper":     {"not the form of digests in manifests", strings.ToUpper(right), size, "", fetch.InvalidContent},
		"Short":     {"cut", right[:40], size, "", fetch.InvalidContent},
		"Path":      {"would leave the API's path", "sha256:../../x", size, "", fetch.InvalidContent},
		"None":      {"nothing to verify with", "", size, "", fetch.InvalidContent},
		"Larger":    {"more than there is", right, size + "0", "", fetch.DigestMismatch},
		"Smaller":   {"less than there is", right, "1", "", fetch.DigestMismatch},
		"NoBytes":   {"nothing of it", right, "0", "", fetch.DigestMismatch},
		"Negative":  {"sizes are not negative", right, "-1", "", fetch.LimitExceeded},
		"Huge":      {"beyond any limit", right, "9223372036854775807", "", fetch.LimitExceeded},
		"TooHuge":   {"no number of this machine", right, "92233720368547758070", "", fetch.InvalidContent},
		"Fraction":  {"no number of bytes", right, "1e3", "", fetch.InvalidContent},
		"URLs":      {"lies elsewhere", right, size, `,"urls":["http://169.254.169.254/x"]`, fetch.InvalidContent},
		"Data":      {"what the descriptor embeds is not the layer", right, size, `,"data":"ZXZpbA=="`, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"layers":[{"mediaType":%q,"digest":%q,"size":%s%s}]}`,
				types.OCIManifestSchema1, types.OCILayer, tc.digest, tc.size, tc.more)
			u := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/blobs/") {
					_, _ = w.Write(blob)
					return
				}
				w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
				_, _ = w.Write([]byte(manifest))
			}))
			_, files, err := pull(t, options(u.host+"/b:v1"))
			if fetch.ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if (files["a"] == "1") != (tc.want == "") || len(files) > 1 {
				t.Errorf("%s: %v", tc.reason, files)
			}
		})
	}
}

// TestM10ImageByOtherDigests: an image that is named by a digest is the one with that, whatever the algorithm.
func TestM10ImageByOtherDigests(t *testing.T) {
	blob := gzipped(t, packed(t, "a", "1"))
	manifest := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"layers":[{"mediaType":%q,"digest":%q,"size":%d}]}`,
		types.OCIManifestSchema1, types.OCILayer, fetch.SHA256(blob), len(blob))
	u := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/blobs/") {
			_, _ = w.Write(blob)
			return
		}
		w.Header().Set("Docker-Content-Digest", fmt.Sprintf("sha512:%x", sha512.Sum512(manifest)))
		_, _ = w.Write(manifest)
	}))
	if resolved, files, err := pull(t, options(u.host+"/b:v1")); err != nil || files["a"] != "1" || !strings.HasPrefix(resolved.Digest, "sha512:") {
		t.Errorf("a tag: %+v, %v, %v", resolved, files, err)
	}
	for digest, want := range map[string]fetch.Reason{
		fmt.Sprintf("sha512:%x", sha512.Sum512(manifest)): "", fetch.SHA256(manifest).String(): "",
		fmt.Sprintf("sha512:%x", sha512.Sum512(nil)): fetch.DigestMismatch, fmt.Sprintf("sha1:%x", sha1.Sum(manifest)): fetch.Refused,
	} {
		f, err := New(options(u.host + "/b@" + digest))
		if err == nil {
			err = pullWith(t.Context(), t, f)
		}
		if fetch.ReasonOf(err) != want || (err == nil) != (want == "") {
			t.Errorf("%.12s: %v", digest, err)
		}
	}
}

// TestM12DigestsThatLie has a registry that names in its header another digest than that of what it serves: the name is only
// what is asked for next, and what comes has to have it.
func TestM12DigestsThatLie(t *testing.T) {
	u := small(t)
	right, other := imageOf(t, layer(t, "a", "1")), imageOf(t, layer(t, "a", "2"))
	push(t, u.host+"/b:v1", right)
	push(t, u.host+"/b:v2", other)
	absent := fetch.SHA256([]byte("x")).String()
	cases := map[string]struct {
		reason, header string
		serveRight     bool // under whatever digest is asked for
		want           fetch.Reason
		a              string
	}{
		"True":        {"the normal case", digestOf(t, right), false, "", "1"},
		"Other":       {"another image that is there: that one, whole", digestOf(t, other), false, "", "2"},
		"OtherForged": {"another digest, and the bytes of the right one", digestOf(t, other), true, fetch.DigestMismatch, ""},
		"Absent":      {"nothing has it", absent, false, fetch.NotFound, ""},
		"Forged":      {"nothing has it, and something is served", absent, true, fetch.DigestMismatch, ""},
		"Long":        {"another algorithm, of other bytes", fmt.Sprintf("sha512:%x", sha512.Sum512(nil)), true, fetch.DigestMismatch, ""},
		"SHA1":        {"broken: it is computed instead", fmt.Sprintf("sha1:%x", sha1.Sum(nil)), false, "", "1"},
		"Path":        {"would leave the API's path", "sha256:../../../v2/b/manifests/v2", false, "", "1"},
		"Two":         {"a list", digestOf(t, other) + ", " + digestOf(t, right), false, "", "1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			lying := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if tc.serveRight && strings.Contains(r.URL.Path, "/manifests/") {
					r.URL.Path = r.URL.Path[:strings.LastIndex(r.URL.Path, "/")] + "/v1"
				}
				u.Config.Handler.ServeHTTP(lyingWriter{w, tc.header}, r)
			}))
			_, files, err := pull(t, options(lying.host+"/b:v1"))
			if fetch.ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") || files["a"] != tc.a {
				t.Errorf("%s: %v, %v", tc.reason, files, err)
			}
		})
	}
}

// lyingWriter names a digest of its own.
type lyingWriter struct {
	http.ResponseWriter
	digest string
}

func (w lyingWriter) WriteHeader(code int) {
	w.Header().Set("Docker-Content-Digest", w.digest)
	w.ResponseWriter.WriteHeader(code)
}

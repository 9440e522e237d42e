// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// verifierFunc is a function that is a Verifier.
type verifierFunc func(ctx context.Context, s Subject) (string, error)

func (f verifierFunc) Verify(ctx context.Context, s Subject) (string, error) { return f(ctx, s) }

func parsed(t testing.TB, digest string) fetch.Digest {
	t.Helper()
	d, err := fetch.ParseDigest(digest)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestVerifyBeforeAnyLayer(t *testing.T) {
	u := small(t)
	img := imageOf(t, layer(t, "a", "1"))
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: img})
	push(t, u.host+"/org/b:v1", img)
	push(t, u.host+"/org/b:index", index)
	for tag, what := range map[string]remote.Taggable{"v1": img, "index": index} {
		t.Run(tag, func(t *testing.T) {
			raw, err := what.RawManifest()
			if err != nil {
				t.Fatal(err)
			}
			var subject Subject
			var before []string
			o := options(u.host + "/org/b:" + tag)
			o.Verify = []Verifier{verifierFunc(func(_ context.Context, s Subject) (string, error) {
				subject, before = s, u.seen()
				return "a signer", nil
			})}
			u.alter(nil)
			resolved, files, err := pull(t, o)
			if err != nil || resolved.VerifiedBy != "a signer" || files["a"] != "1" {
				t.Fatalf("%+v %v %v", resolved, files, err)
			}
			if subject.Repository != u.host+"/org/b" || subject.Digest != fetch.SHA256(raw) || subject.Size != int64(len(raw)) ||
				subject.MediaType == "" || subject.Registry == nil {
				t.Errorf("%+v", subject)
			}
			if len(before) != 2 || before[1] != "GET /v2/org/b/manifests/"+resolved.Digest {
				t.Errorf("before the verification: %q", before)
			}
		})
	}
}

func TestM14VerificationFailsClosed(t *testing.T) {
	u := small(t)
	img := imageOf(t, layer(t, "a", "1"))
	push(t, u.host+"/b:v1", img)
	cases := map[string]struct {
		reason string
		verify verifierFunc
		want   fetch.Reason
	}{
		"Refused": {"the verifier says no", func(context.Context, Subject) (string, error) { return "", fetch.Errorf(fetch.Unverified, "no") }, fetch.Unverified},
		"Plain":   {"the verifier fails", func(context.Context, Subject) (string, error) { return "", errors.New("broken") }, ""},
		"Both":    {"an error counts", func(context.Context, Subject) (string, error) { return "x", fetch.Errorf(fetch.Unverified, "no") }, fetch.Unverified},
		"NoOne":   {"nothing was found to verify", func(context.Context, Subject) (string, error) { return "", nil }, fetch.Unverified},
		"Refs": {"no signature", func(ctx context.Context, s Subject) (string, error) {
			_, _, err := s.Registry.Manifest(ctx, "sha256-x.sig")
			return "x", err
		}, fetch.NotFound},
		"Cancelled": {"the end of all", func(context.Context, Subject) (string, error) { return "", context.Canceled }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := options(u.host + "/b:v1")
			o.Verify = []Verifier{tc.verify}
			u.alter(nil)
			resolved, files, err := pull(t, o)
			if err == nil || fetch.ReasonOf(err) != tc.want || len(files) > 0 || resolved.VerifiedBy != "" {
				t.Errorf("%s: %+v %v %v", tc.reason, resolved, files, err)
			}
			if got := strings.Join(u.seen(), "\n"); strings.Contains(got, "/blobs/") {
				t.Errorf("a layer was fetched:\n%s", got)
			}
		})
	}
}

func TestVerifyAgain(t *testing.T) {
	u := small(t)
	img := imageOf(t, layer(t, "a", "1"))
	push(t, u.host+"/b:v1", img)
	o := options(u.host + "/b:v1")
	by := "first"
	o.Verify = []Verifier{verifierFunc(func(context.Context, Subject) (string, error) { return by, nil })}
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	previous := fetch.Resolved{Reference: "v1", Digest: digestOf(t, img), VerifiedBy: "another signer"}
	u.alter(nil)
	got, err := f.Verify(context.Background(), previous)
	if err != nil || got.VerifiedBy != "first" || got.Digest != previous.Digest || len(u.seen()) != 1 {
		t.Errorf("%+v, %v, %q", got, err, u.seen())
	}
	by = ""
	if _, err := f.Verify(context.Background(), previous); fetch.ReasonOf(err) != fetch.Unverified {
		t.Errorf("%v", err)
	}
	o.Verify = nil
	if f, err = New(o); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Verify(context.Background(), previous); err != nil || got.VerifiedBy != "" {
		t.Errorf("nothing verifies it any more: %+v, %v", got, err)
	}
}

// TestF17RetagBetweenResolveAndPull has the registry move the tag as soon as it was asked for, and again at each request.
func TestF17RetagBetweenResolveAndPull(t *testing.T) {
	u := small(t)
	ref := u.host + "/b:v1"
	good := imageOf(t, layer(t, "a", "good"))
	push(t, ref, good)
	var once sync.Once
	u.alter(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v2/b/") {
			once.Do(func() { push(t, ref, imageOf(t, layer(t, "a", "evil"))) })
		}
		return false
	})
	o := options(ref)
	var verified string
	o.Verify = []Verifier{verifierFunc(func(_ context.Context, s Subject) (string, error) {
		verified = s.Digest.String()
		return "a signer", nil
	})}
	resolved, files, err := pull(t, o)
	if want := digestOf(t, good); err != nil || files["a"] != "good" || resolved.Digest != want || verified != want {
		t.Errorf("%+v, %v, verified %s: %v", resolved, files, verified, err)
	}
	again, files, err := pull(t, o)
	if err != nil || files["a"] != "evil" || again.Digest == resolved.Digest || again.Same(resolved) {
		t.Errorf("the tag moved: %+v, %v: %v", again, files, err)
	}
}

func TestF17DeletedTag(t *testing.T) {
	u := small(t)
	img := imageOf(t, layer(t, "a", "1"))
	push(t, u.host+"/b:v1", img)
	f, err := New(options(u.host + "/b:v1"))
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	u.alter(func(w http.ResponseWriter, r *http.Request) bool {
		gone := strings.HasSuffix(r.URL.Path, "/manifests/v1")
		if gone {
			w.WriteHeader(http.StatusNotFound)
		}
		return gone
	})
	if _, err := f.Resolve(context.Background()); fetch.ReasonOf(err) != fetch.NotFound {
		t.Errorf("%v", err)
	}
	if _, files, err := fetchInto(t, f, resolved, fetch.DefaultLimits()); err != nil || files["a"] != "1" {
		t.Errorf("what was resolved is there: %v %v", files, err)
	}
}

func registryOf(t testing.TB, u *upstream) Registry {
	t.Helper()
	f, err := New(options(u.host + "/b:v1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.places[0].client.CloseIdleConnections)
	return f.places[0].registry
}

func TestManifest(t *testing.T) {
	ctx := context.Background()
	for name, u := range servers(t) {
		t.Run(name, func(t *testing.T) {
			img := imageOf(t, layer(t, "a", "1"))
			push(t, u.host+"/b:v1", img)
			raw, err := img.RawManifest()
			if err != nil {
				t.Fatal(err)
			}
			r := registryOf(t, u)
			for _, reference := range []string{"v1", digestOf(t, img), strings.ToUpper(digestOf(t, img))} {
				data, mediaType, err := r.Manifest(ctx, reference)
				if err != nil || string(data) != string(raw) || mediaType != string(types.OCIManifestSchema1) {
					t.Errorf("%s: %s %s %v", reference, data, mediaType, err)
				}
			}
			if _, _, err := r.Manifest(ctx, "v2"); fetch.ReasonOf(err) != fetch.NotFound {
				t.Errorf("no such tag: %v", err)
			}
			if _, _, err := r.Manifest(ctx, "sha256:"+strings.Repeat("a", 64)); fetch.ReasonOf(err) != fetch.NotFound {
				t.Errorf("no such digest: %v", err)
			}
			for _, reference := range []string{"", "../tags/list", "v1?x", "sha256:abc", "md5:" + strings.Repeat("a", 32), "v1\n"} {
				if _, _, err := r.Manifest(ctx, reference); fetch.ReasonOf(err) != fetch.Refused {
					t.Errorf("%q: %v", reference, err)
				}
			}
			u.alter(func(w http.ResponseWriter, _ *http.Request) bool {
				_, _ = w.Write(append(raw, ' '))
				return true
			})
			if _, _, err := r.Manifest(ctx, digestOf(t, img)); fetch.ReasonOf(err) != fetch.DigestMismatch {
				t.Errorf("other bytes: %v", err)
			}
			u.alter(func(w http.ResponseWriter, _ *http.Request) bool {
				_, _ = io.CopyN(w, zeros{}, maxManifest+1)
				return true
			})
			if _, _, err := r.Manifest(ctx, "v1"); fetch.ReasonOf(err) != fetch.LimitExceeded {
				t.Errorf("without end: %v", err)
			}
		})
	}
}

func TestBlob(t *testing.T) {
	ctx := context.Background()
	u := small(t)
	img := imageOf(t, layer(t, "a", strings.Repeat("x", 1000)))
	push(t, u.host+"/b:v1", img)
	manifest, err := img.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	blob, r := manifest.Layers[0], registryOf(t, u)
	if data, err := r.Blob(ctx, blob, blob.Size); err != nil || fetch.SHA256(data).String() != blob.Digest.String() {
		t.Errorf("at the limit: %v", err)
	}
	if _, err := r.Blob(ctx, blob, blob.Size-1); fetch.ReasonOf(err) != fetch.LimitExceeded {
		t.Errorf("beyond the limit: %v", err)
	}
	for what, change := range map[string]func(d *v1.Descriptor){
		"Negative": func(d *v1.Descriptor) { d.Size = -1 },
		"Short":    func(d *v1.Descriptor) { d.Size-- },
		"Long":     func(d *v1.Descriptor) { d.Size++ },
		"Digest":   func(d *v1.Descriptor) { d.Digest.Hex = strings.Repeat("a", 64) },
		"Escape":   func(d *v1.Descriptor) { d.Digest.Hex = "../../x" },
	} {
		lie := blob
		change(&lie)
		if _, err := r.Blob(ctx, lie, 1<<20); err == nil {
			t.Error(what)
		}
	}
	u.alter(func(w http.ResponseWriter, _ *http.Request) bool {
		w.(http.Flusher).Flush()
		_, _ = io.CopyN(w, zeros{}, blob.Size)
		return true
	})
	if _, err := r.Blob(ctx, blob, blob.Size); fetch.ReasonOf(err) != fetch.DigestMismatch {
		t.Errorf("other bytes: %v", err)
	}
}

// signatureOf is an artifact that refers to another image.
func signatureOf(t testing.TB, subject v1.Image, artifactType string) v1.Image {
	t.Helper()
	media, err := subject.MediaType()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := subject.Digest()
	if err != nil {
		t.Fatal(err)
	}
	size, err := subject.Size()
	if err != nil {
		t.Fatal(err)
	}
	img := mutate.ConfigMediaType(imageOf(t, layer(t, "signature", artifactType)), types.MediaType(artifactType))
	return mutate.Subject(img, v1.Descriptor{MediaType: media, Digest: digest, Size: size}).(v1.Image)
}

// TestReferrers pushes to a registry with the API, and to one where the library keeps the list under a tag.
func TestReferrers(t *testing.T) {
	ctx := context.Background()
	for name, u := range servers(t) {
		t.Run(name, func(t *testing.T) {
			img := imageOf(t, layer(t, "a", "1"))
			push(t, u.host+"/b:v1", img)
			r, subject := registryOf(t, u), parsed(t, digestOf(t, img))
			if found, err := r.Referrers(ctx, subject, ""); err != nil || len(found) > 0 {
				t.Errorf("none yet: %v %v", found, err)
			}
			want := map[string]bool{}
			for i, kind := range []string{"application/x.one", "application/x.two"} {
				signature := signatureOf(t, img, kind)
				push(t, fmt.Sprintf("%s/b:s%d", u.host, i), signature)
				want[digestOf(t, signature)] = true
			}
			for _, kind := range []string{"", "application/x.one", "application/x.none"} {
				u.alter(nil)
				found, err := r.Referrers(ctx, subject, kind)
				if most := map[string]int{"": 2, "application/x.one": 1}[kind]; err != nil || len(found) != most {
					t.Errorf("%q: %v %v", kind, found, err)
				}
				for _, d := range found {
					if !want[d.Digest.String()] || kind != "" && d.ArtifactType != kind {
						t.Errorf("%q: %+v", kind, d)
					}
				}
				if got := u.seen(); (name == "Distribution") != (len(got) == 2) {
					t.Errorf("%q", got)
				}
			}
		})
	}
}

func TestReferrersOfOddRegistries(t *testing.T) {
	ctx := context.Background()
	index := func(n int) string {
		one := `{"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":"x","size":1,"digest":"sha256:` + strings.Repeat("a", 64) + `"}`
		return `{"mediaType":"` + string(types.OCIImageIndex) + `","manifests":[` + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + `]}`
	}
	answer := func(code int, mediaType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", mediaType)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	cases := map[string]struct {
		reason string
		api    http.HandlerFunc
		want   fetch.Reason
		count  int // 7 under the tag
	}{
		"NotFound":   {"no such API", answer(404, "text/plain", "404 page not found"), "", 7},
		"Bad":        {"no such API", answer(400, "text/plain", ""), "", 7},
		"NotAllowed": {"no such API", answer(405, "text/plain", ""), "", 7},
		"HTML":       {"some page", answer(200, "text/html", "<html>"), "", 7},
		"Most":       {"at the limit", answer(200, string(types.OCIImageIndex), index(maxReferrers)), "", maxReferrers},
		"TooMany":    {"one more", answer(200, string(types.OCIImageIndex), index(maxReferrers+1)), fetch.LimitExceeded, 0},
		"Damaged":    {"no index", answer(200, string(types.OCIImageIndex), "{"), fetch.InvalidContent, 0},
		"Broken":     {"another time", answer(503, "text/plain", ""), fetch.Unreachable, 0},
		"Forbidden":  {"not for us", answer(403, "text/plain", ""), fetch.Unauthorized, 0},
		"Unfiltered": {"the registry may leave the filter to us", answer(200, string(types.OCIImageIndex), strings.Replace(index(5), `"x"`, `"y"`, 2)), "", 3},
		"OtherServer": {"leads elsewhere", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", `<http://127.0.0.2/x>; rel="next"`)
			answer(200, string(types.OCIImageIndex), index(1))(w, r)
		}, fetch.Refused, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/referrers/") {
					tc.api(w, r)
					return
				}
				answer(200, string(types.OCIImageIndex), index(7))(w, r)
			}))
			found, err := registryOf(t, u).Referrers(ctx, fetch.SHA256(nil), "x")
			if fetch.ReasonOf(err) != tc.want || tc.want == "" && len(found) != tc.count {
				t.Errorf("%s: %d, %v", tc.reason, len(found), err)
			}
		})
	}
}

func TestReferrersTag(t *testing.T) {
	for digest, want := range map[string]string{
		"sha256:" + strings.Repeat("a", 64):  "sha256-" + strings.Repeat("a", 64),
		"sha512:" + strings.Repeat("b", 128): "sha512-" + strings.Repeat("b", 64),
	} {
		if got := referrersTag(parsed(t, digest)); got != want {
			t.Errorf("%s: %s", digest, got)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package http

import (
	"context"
	"net/http"
	"os"
	"testing"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// verifierFunc decides by a function.
type verifierFunc func(digest fetch.Digest, signature []byte) (string, error)

func (f verifierFunc) VerifyBlob(_ context.Context, digest fetch.Digest, signature []byte) (string, error) {
	return f(digest, signature)
}

// TestM36NothingIsUnpackedUnverified: while the signature of an archive is judged nothing of it was unpacked, and nothing is
// when it is not accepted; what would refuse it while unpacking is never heard of.
func TestM36NothingIsUnpackedUnverified(t *testing.T) {
	for name, content := range map[string][]byte{
		"tar": packed(t, "a", "1"), "tar.gz": gzipped(t, packed(t, "a", "1")), "tar.zst": zstded(t, packed(t, "a", "1")), "zip": zipped(t, "a", "1"),
		"damaged.tar.gz": gzipped(t, packed(t, "a", "1"))[:30], "escaping.tar": packed(t, "../a", "1"),
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/sig" {
					_, _ = w.Write([]byte("signature"))
					return
				}
				_, _ = w.Write(content)
			})
			for _, accepted := range []bool{false, true} {
				dir := t.TempDir()
				tree, err := fetch.NewTree(dir, fetch.DefaultLimits())
				if err != nil {
					t.Fatal(err)
				}
				asked := false
				f, err := New(Options{URL: url + "/b." + name, Signature: url + "/sig", Client: client(t), Limits: fetch.DefaultLimits(),
					Verify: verifierFunc(func(digest fetch.Digest, signature []byte) (string, error) {
						asked = true
						if _, err := os.Stat(dir + "/a"); err == nil {
							t.Error("it was unpacked before its signature was verified")
						}
						if digest != fetch.SHA256(content) || string(signature) != "signature" {
							t.Errorf("verified is %s, with %q", digest, signature)
						}
						if !accepted {
							return "", fetch.Errorf(fetch.Unverified, "no trusted signature")
						}
						return "a signer", nil
					})})
				if err != nil {
					t.Fatal(err)
				}
				r, err := f.Fetch(t.Context(), fetch.Resolved{}, tree)
				_, unpacked := os.Stat(dir + "/a")
				switch {
				case !asked:
					t.Errorf("the signature was not looked at: %v", err)
				case !accepted && (fetch.ReasonOf(err) != fetch.Unverified || unpacked == nil):
					t.Errorf("not accepted: %v, unpacked: %v", err, unpacked)
				case accepted && (err == nil) != (unpacked == nil), accepted && err == nil && r.VerifiedBy != "a signer":
					t.Errorf("accepted: %v %v, unpacked: %v", r, err, unpacked)
				}
				if accepted && err == nil {
					if by, err := VerifyKept(t.Context(), verifierFunc(func(digest fetch.Digest, s []byte) (string, error) {
						return string(s) + digest.String(), nil
					}), r.Digest, r.Signature); err != nil || by != "signature"+r.Digest {
						t.Errorf("judged again: %q, %v", by, err)
					}
					if _, err := VerifyKept(t.Context(), nil, fetch.SHA256(nil).String(), r.Signature); fetch.ReasonOf(err) != fetch.Unverified {
						t.Errorf("judged for another archive: %v", err)
					}
				}
				left, err := os.ReadDir(dir)
				if err != nil || len(left) > 1 || len(left) == 1 && left[0].Name() != "a" {
					t.Errorf("left are %v, %v", left, err)
				}
				_ = tree.Close()
			}
		})
	}
}

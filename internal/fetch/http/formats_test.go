// SPDX-License-Identifier: Apache-2.0

package http

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// TestFormatsByName: what a name promises must come, and where it promises nothing the first bytes decide.
func TestFormatsByName(t *testing.T) {
	archive := packed(t, "a", "1")
	kinds := map[string][]byte{"tar": archive, "tar.gz": gzipped(t, archive), "tar.zst": zstded(t, archive), "zip": zipped(t, "a", "1")}
	names := map[string]string{
		"/b.tgz": "tar.gz", "/b.tar.gz": "tar.gz", "/B.TGZ": "tar.gz", "/b.tar": "tar", "/b.zip": "zip", "/b.tzst": "tar.zst",
		"/b.tar.zst": "tar.zst", "/b": "", "/b.bundle": "", "/download?file=x.zip": "",
	}
	for name, promised := range names {
		for kind, data := range kinds {
			_, files, err := pull(t, Options{URL: serve(t, body(data)) + name}, fetch.Resolved{})
			if want := promised == "" || promised == kind; want != (err == nil) {
				t.Errorf("%s as %s: %v", kind, name, err)
			}
			if diff := cmp.Diff(map[string]string{"a": "1"}, files); err == nil && diff != "" {
				t.Errorf("%s as %s: %s", kind, name, diff)
			}
		}
	}
}

// secured gives its content to clients with the password, and redirects others.
func secured(t *testing.T, data []byte, elsewhere string) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "CANARY-password" {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		if elsewhere != "" {
			http.Redirect(w, r, elsewhere, http.StatusFound)
			return
		}
		_, _ = w.Write(data)
	})
}

func TestM20LoginIsForOneServer(t *testing.T) {
	data := gzipped(t, packed(t, "a", "1"))
	var got http.Header
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		_, _ = w.Write(data)
	})
	login := fetch.Login{Username: "me", Password: "CANARY-password"}
	for name, elsewhere := range map[string]string{"here": "", "elsewhere": other + "/b.tgz"} {
		if _, files, err := pull(t, Options{URL: secured(t, data, elsewhere) + "/b.tgz", Login: login}, fetch.Resolved{}); err != nil || files["a"] != "1" {
			t.Errorf("%s: %v, %v", name, files, err)
		}
	}
	if got.Get("Authorization") != "" {
		t.Error("the other server saw the login")
	}
	_, _, err := pull(t, Options{URL: secured(t, data, "") + "/b.tgz", Login: fetch.Login{Username: "me", Password: "CANARY-wrong"}}, fetch.Resolved{})
	if fetch.ReasonOf(err) != fetch.Unauthorized || strings.Contains(err.Error(), "CANARY") || !strings.Contains(err.Error(), "Secret") {
		t.Errorf("a wrong password: %v", err)
	}
}

// trusting accepts one signature of one digest.
type trusting struct{ digest, signature string }

func (v trusting) VerifyBlob(_ context.Context, digest fetch.Digest, signature []byte) (string, error) {
	if digest.String() != v.digest || string(signature) != v.signature {
		return "", fetch.Errorf(fetch.Unverified, "no signature is accepted")
	}
	return "a signer", nil
}

// TestM14Detached: an archive is not used if its signature is missing, of something else or elsewhere.
func TestM14Detached(t *testing.T) {
	data := gzipped(t, packed(t, "a", "1"))
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/b.tgz":
			_, _ = w.Write(data)
		case "/good", "/huge":
			_, _ = w.Write([]byte("signed"))
			_, _ = w.Write(make([]byte, map[string]int{"/huge": mostSignature}[r.URL.Path]))
		case "/bad":
			_, _ = w.Write([]byte("scribbled"))
		case "/closed":
			http.Error(w, "", http.StatusForbidden)
		default:
			http.NotFound(w, r)
		}
	})
	trust := trusting{fetch.SHA256(data).String(), "signed"}
	tests := map[string]struct {
		signature string
		verify    trusting
		want      fetch.Reason
		text      string
	}{
		"signed":   {"/good", trust, "", ""},
		"other":    {"/bad", trust, fetch.Unverified, "no signature"},
		"content":  {"/good", trusting{fetch.SHA256(nil).String(), "signed"}, fetch.Unverified, "no signature"},
		"unsigned": {"/none", trust, fetch.Unverified, "it is not signed: there is nothing at"},
		"closed":   {"/closed", trust, fetch.Unauthorized, "its signature"},
		"huge":     {"/huge", trust, fetch.LimitExceeded, "its signature has more than"},
	}
	for name, tt := range tests {
		resolved, _, err := pull(t, Options{URL: server + "/b.tgz", Signature: server + tt.signature, Verify: tt.verify}, fetch.Resolved{})
		if fetch.ReasonOf(err) != tt.want || err != nil && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v", name, err)
		}
		if (err == nil) != (resolved.VerifiedBy == "a signer") {
			t.Errorf("%s: verified by %q", name, resolved.VerifiedBy)
		}
	}
	if _, err := New(Options{URL: server + "/b.tgz", Verify: trust, Client: client(t)}); fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("without a signature's URL: %v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/packs"
)

// hostile is a server that advertises one commit and answers with what it likes.
func hostile(t *testing.T, refs string, pack http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			_, _ = io.WriteString(w, refs)
			return
		}
		pack(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/r.git"
}

func line(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

const someCommit = "1111111111111111111111111111111111111111"

// advertisement lists references, given as hash and name in turn.
func advertisement(capabilities string, refs ...string) string {
	var text strings.Builder
	text.WriteString(line("# service=git-upload-pack\n") + "0000")
	for i := 0; i < len(refs); i += 2 {
		ref := refs[i] + " " + refs[i+1]
		if i == 0 {
			ref += "\x00" + capabilities
		}
		text.WriteString(line(ref + "\n"))
	}
	return text.String() + "0000"
}

func TestM15HostileAdvertisements(t *testing.T) {
	many := []string{}
	for i := range 1001 {
		many = append(many, someCommit, fmt.Sprintf("refs/heads/b%04d", i))
	}
	limits := fetch.DefaultLimits()
	limits.GitRefs = 1000
	page := "<!DOCTYPE html><html>CANARY\x1b[2J</html>"
	cases := map[string]struct {
		reason, refs string
		o            Options
		want         fetch.Reason
	}{
		"Many":     {"more references than allowed", advertisement("", many...), Options{Branch: "b0000"}, fetch.LimitExceeded},
		"AtLimit":  {"input at the limit is accepted", advertisement("", many[:2000]...), Options{Branch: "b0000"}, ""},
		"Page":     {"no Git server", page, Options{Branch: "main"}, fetch.InvalidContent},
		"Nothing":  {"no Git server", "", Options{Branch: "main"}, fetch.InvalidContent},
		"Empty":    {"a repository without commits", advertisement("", strings.Repeat("0", 40), "capabilities^{}"), Options{}, fetch.NotFound},
		"NoHead":   {"no default branch", advertisement("", someCommit, "refs/heads/x"), Options{}, fetch.NotFound},
		"EvilHead": {"HEAD is called something odd", advertisement("symref=HEAD:refs/heads/../../x", someCommit, "HEAD"), Options{}, ""},
		"EvilTag":  {"a version that is no valid name", advertisement("", someCommit, "refs/tags/v1.0.0\x1b[2J"), Options{SemVer: "*"}, fetch.NotFound},
		"LockTag":  {"a version that git would not take as a name", advertisement("", someCommit, "refs/tags/1.0.0-x.lock"), Options{SemVer: ">=1.0.0-0"}, fetch.NotFound},
		"Cut":      {"half an answer", advertisement("", someCommit, "refs/heads/x")[:60], Options{Branch: "x"}, fetch.InvalidContent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.o.URL, tc.o.Limits = hostile(t, tc.refs, nil), limits
			resolved, err := fetcher(t, tc.o).Resolve(context.Background())
			if fetch.ReasonOf(err) != tc.want || (err == nil) != (tc.want == "") {
				t.Fatalf("%s: %+v, %v", tc.reason, resolved, err)
			}
			if text := fmt.Sprint(err, resolved); strings.Contains(text, "\x1b") || strings.Contains(text, "..") {
				t.Errorf("%s: %q", tc.reason, text)
			}
		})
	}
}

func TestM18EndlessAdvertisement(t *testing.T) {
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		_, _ = io.WriteString(w, strings.TrimSuffix(advertisement("", someCommit, "refs/heads/x"), "0000"))
		for i := 0; ; i++ {
			if _, err := io.WriteString(w, line(fmt.Sprintf("%s refs/heads/%d\n", someCommit, i))); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	limits := fetch.DefaultLimits()
	limits.GitRefs = 1000
	_, err := fetcher(t, Options{URL: server.URL, Limits: limits}).Resolve(context.Background())
	if fetch.ReasonOf(err) != fetch.LimitExceeded {
		t.Errorf("got %v", err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the connection is still open")
	}
}

func TestM18EndlessSideband(t *testing.T) {
	chatter := line("\x02" + strings.Repeat("progress ", 1000))
	url := hostile(t, advertisement("side-band-64k shallow", someCommit, "refs/heads/x"),
		func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, line("shallow "+someCommit)+"0000"+line("NAK\n"))
			for {
				if _, err := io.WriteString(w, chatter); err != nil {
					return
				}
			}
		})
	limits := fetch.DefaultLimits()
	limits.GitPackBytes = 1 << 20
	if _, _, err := pull(t, Options{URL: url, Branch: "x", Limits: limits}); fetch.ReasonOf(err) != fetch.LimitExceeded {
		t.Errorf("chatter counts: %v", err)
	}
}

func TestM17BadAnswers(t *testing.T) {
	cases := map[string]struct {
		reason, body string
		want         fetch.Reason
	}{
		"NoPack":    {"something else", "hello", fetch.InvalidContent},
		"Error":     {"the server's words are shown safely", line("ERR upload-pack: \x1b[2J"), fetch.Unreachable},
		"Truncated": {"half a pack", line("NAK\n") + "PACK\x00\x00\x00\x02\x00\x00\x00\x05", fetch.InvalidContent},
		"Empty":     {"a pack without the commit", line("NAK\n") + string(packs.Of()), fetch.InvalidContent},
		"Garbage":   {"no pack", line("NAK\n") + "XXXXXXXXXXXXXXXXXXXXXXXX", fetch.InvalidContent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			url := hostile(t, advertisement("", someCommit, "refs/heads/x"), func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, tc.body)
			})
			_, files, err := pull(t, Options{URL: url, Branch: "x"})
			if fetch.ReasonOf(err) != tc.want || strings.Contains(fmt.Sprint(err), "\x1b") || len(files) > 0 {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestM18Redirects(t *testing.T) {
	r := newRepository(t)
	r.files("main", "a", "1")
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		http.Redirect(w, q, strings.TrimSuffix(r.url, "/org/repo.git")+q.URL.RequestURI(), http.StatusMovedPermanently)
	}))
	t.Cleanup(first.Close)
	if _, files, err := pull(t, Options{URL: first.URL + "/org/repo.git"}); err != nil || files["a"] != "1" {
		t.Errorf("a repository that has moved: %v %v", files, err)
	}
	denied := httptest.NewServer(http.RedirectHandler("http://127.0.0.9:1/org/repo.git/info/refs", http.StatusFound))
	t.Cleanup(denied.Close)
	if _, _, err := pull(t, Options{URL: denied.URL}); fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("a redirect to a denied address: %v", err)
	}
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy was used") }))
	t.Cleanup(proxy.Close)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	if _, _, err := pull(t, Options{URL: "http://satchel.invalid/r.git"}); fetch.ReasonOf(err) != fetch.Unreachable {
		t.Errorf("got %v", err)
	}
}

func TestFailuresAreDistinct(t *testing.T) {
	answer := func(code int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "CANARY")
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	cases := map[string]struct {
		url  string
		want fetch.Reason
		text string
	}{
		"NotFound":    {answer(404), fetch.NotFound, "not found (404 Not Found): check the URL and the reference"},
		"Private":     {answer(401), fetch.Unauthorized, "access denied (401 Unauthorized): check the URL, or that the repository is public"},
		"Forbidden":   {answer(403), fetch.Unauthorized, "403"},
		"Limited":     {answer(429), fetch.RateLimited, "429"},
		"Broken":      {answer(502), fetch.Unreachable, "502"},
		"Closed":      {"http://127.0.0.1:1", fetch.Unreachable, "connection refused"},
		"UnknownHost": {"http://satchel.invalid/r", fetch.Unreachable, "git repository http://satchel.invalid/r: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, _, err := pull(t, Options{URL: tc.url})
			if fetch.ReasonOf(err) != tc.want || !strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestF14ContextEnds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := fetcher(t, Options{URL: server.URL}).Resolve(ctx); fetch.ReasonOf(err) != fetch.Timeout {
		t.Errorf("got %v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/tests/canary"
)

// elsewhere serves on 127.0.0.2, the only address that its client may reach.
func elsewhere(t *testing.T, handler http.HandlerFunc) (host string, o Options) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Skipf("this machine has no second loopback address: %v", err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}} //nolint:gosec // a test server
	server.Start()
	t.Cleanup(server.Close)
	client := guard.AddressPolicy{
		Allow:         []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")},
		InsecureHosts: []string{"127.0.0.2", "localhost", "127.0.0.1", "::ffff:127.0.0.1", "169.254.169.254"},
	}.HTTPClient(fetch.DefaultLimits())
	t.Cleanup(client.CloseIdleConnections)
	host = listener.Addr().String()
	return host, Options{Ref: host + "/b:v1", Insecure: true, Client: client, Limits: fetch.DefaultLimits()}
}

func TestM12TokenServers(t *testing.T) {
	port := strings.TrimPrefix(canary.Serve(t).URL, "http://127.0.0.1:")
	cases := map[string]struct{ reason, realm string }{
		"Name":      {"a name that resolves to loopback", "http://localhost:" + port + "/token"},
		"Address":   {"the address itself", "http://127.0.0.1:" + port + "/token"},
		"Mapped":    {"another spelling", "http://[::ffff:127.0.0.1]:" + port + "/token"},
		"Metadata":  {"the cloud's credentials", "http://169.254.169.254/token"},
		"Redirect":  {"the token server redirects", "SELF/redirect"},
		"Downgrade": {"to another scheme", "ftp://localhost:" + port + "/token"},
		"Chain":     {"the token server redirects to itself first", "SELF/chain"},
		"Refresh":   {"a redirect that is no status", "SELF/refresh"},
		"User":      {"the registry's name as a user", "http://SELFHOST@127.0.0.1:" + port + "/token"},
		"Password":  {"credentials in the URL", "http://u:p@localhost:" + port + "/token"},
		"Metadata6": {"the cloud's credentials", "http://[fd00:ec2::254]/token"},
		"Mapped2":   {"another spelling", "http://[::ffff:7f00:1]:" + port + "/token"},
		"Decimal":   {"another spelling", "http://2130706433:" + port + "/token"},
		"Dot":       {"another spelling", "http://localhost.:" + port + "/token"},
		"Any":       {"all addresses of this machine", "http://0.0.0.0:" + port + "/token"},
		"Relative":  {"no server", "/token"},
		"NoScheme":  {"no scheme", "//127.0.0.1:" + port + "/token"},
		"File":      {"this machine", "file:///var/run/secrets/kubernetes.io/serviceaccount/token"},
		"Opaque":    {"no server", "http:127.0.0.1:" + port + "/token"},
		"Newline":   {"forges a request", "http://127.0.0.1:" + port + "/token%0d%0aX:%20y"},
		"Empty":     {"no realm", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, o := elsewhere(t, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/chain":
					http.Redirect(w, r, "/redirect", http.StatusTemporaryRedirect)
					return
				case "/redirect":
					http.Redirect(w, r, "http://localhost:"+port+"/token", http.StatusTemporaryRedirect)
					return
				case "/refresh":
					w.Header().Set("Refresh", "0; url=http://localhost:"+port+"/token")
					w.Header().Set("Location", "http://localhost:"+port+"/token")
					return
				}
				realm := strings.NewReplacer("SELFHOST", r.Host, "SELF", "http://"+r.Host).Replace(tc.realm)
				w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q,service=\"x\"", realm))
				w.WriteHeader(http.StatusUnauthorized)
			})
			_, _, err := pull(t, o)
			if r := fetch.ReasonOf(err); r != fetch.Refused && r != fetch.Unauthorized {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestM12RedirectedBlobs(t *testing.T) {
	port := strings.TrimPrefix(canary.Serve(t).URL, "http://127.0.0.1:")
	u := small(t)
	push(t, u.host+"/b:v1", imageOf(t, layer(t, "a", "1")))
	var target string
	_, o := elsewhere(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(w, r, target, http.StatusTemporaryRedirect)
			return
		}
		u.Config.Handler.ServeHTTP(w, r)
	})
	for _, target = range []string{
		"http://localhost:" + port, "http://127.0.0.1:" + port, "http://[::ffff:7f00:1]:" + port,
		"http://169.254.169.254/latest", "file:///etc/passwd",
	} {
		if _, _, err := pull(t, o); err == nil || fetch.ReasonOf(err) == fetch.InvalidContent {
			t.Errorf("%s: %v", target, err)
		}
	}
}

func TestM12BearerTokenStaysWithTheRegistry(t *testing.T) {
	u := small(t)
	push(t, u.host+"/b:v1", imageOf(t, layer(t, "a", "1")))
	var leaked, used atomic.Bool
	blobs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked.Store(leaked.Load() || r.Header.Get("Authorization") != "")
		u.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(blobs.Close)
	guarded := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token":
			_ = json.NewEncoder(w).Encode(map[string]string{"token": "CANARY-token"})
		case r.Header.Get("Authorization") != "Bearer CANARY-token":
			w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q", "http://"+r.Host+"/token"))
			w.WriteHeader(http.StatusUnauthorized)
		case strings.Contains(r.URL.Path, "/blobs/"):
			used.Store(true)
			http.Redirect(w, r, blobs.URL+r.URL.Path, http.StatusTemporaryRedirect)
		default:
			u.Config.Handler.ServeHTTP(w, r)
		}
	}))
	_, files, err := pull(t, options(guarded.host+"/b:v1"))
	if err != nil || files["a"] != "1" || !used.Load() {
		t.Fatalf("%v %v", files, err)
	}
	if leaked.Load() {
		t.Error("the token went to another server")
	}
}

func TestT15NoPlainHTTPUnlessInsecure(t *testing.T) {
	u := small(t)
	push(t, u.host+"/b:v1", imageOf(t, layer(t, "a", "1")))
	_, port, err := net.SplitHostPort(u.host)
	if err != nil {
		t.Fatal(err)
	}
	u.alter(nil)
	for _, host := range []string{"localhost", "127.0.0.1"} {
		o := options(host + ":" + port + "/b:v1")
		o.Insecure = false
		if _, _, err := pull(t, o); fetch.ReasonOf(err) != fetch.Unreachable {
			t.Errorf("%s: %v", host, err)
		}
	}
	if got := u.seen(); len(got) > 0 {
		t.Errorf("requests over plain HTTP: %v", got)
	}
}

// TestT15InsecureOnlyForListedHosts: what a tenant writes changes nothing for a host that the cluster does not list, also
// where a listed one leads there.
func TestT15InsecureOnlyForListedHosts(t *testing.T) {
	port := strings.TrimPrefix(canary.Serve(t).URL, "http://127.0.0.1:")
	client := guard.AddressPolicy{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, InsecureHosts: []string{"127.0.0.2", "127.0.0.1:1", "other.localhost", "registry.localhost:5000"},
	}.HTTPClient(fetch.DefaultLimits())
	t.Cleanup(client.CloseIdleConnections)
	for _, host := range []string{
		"127.0.0.1:" + port, "localhost:" + port, "LOCALHOST:" + port, "localhost.:" + port, "registry.localhost:" + port, "another.localhost.:" + port,
		"[::ffff:127.0.0.1]:" + port, "[::ffff:127.0.0.3]:" + port, "[::ffff:7f00:1]:" + port, "127.0.0.1.:" + port, "2130706434:" + port, "127.0.0.02:" + port,
	} {
		for _, o := range []Options{{Ref: host + "/b:v1"}, {Ref: host + "/b", SemVer: "*"}} {
			o.Insecure, o.Client, o.Limits = true, client, fetch.DefaultLimits()
			o.Keychain = one(host, fetch.Login{Username: "u", Password: "CANARY"})
			_, _, err := pull(t, o)
			if fetch.ReasonOf(err) != fetch.Refused || strings.Contains(err.Error(), "CANARY") {
				t.Errorf("%s: %v", host, err)
			}
		}
	}
	for name, lead := range map[string]http.HandlerFunc{
		"Redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:"+port+r.URL.Path, http.StatusTemporaryRedirect)
		},
		"Realm": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", "Bearer realm=\"http://127.0.0.1:"+port+"/token\"")
			w.WriteHeader(http.StatusUnauthorized)
		},
	} {
		_, o := elsewhere(t, lead)
		o.Client = client
		if _, _, err := pull(t, o); fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), "--insecure-hosts") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestS2LayersAreStreamed(t *testing.T) {
	const size = 24 << 20
	u := small(t)
	blob := packed(t, "big", strings.Repeat("0123456789abcdef", size/16))
	push(t, u.host+"/b:v1", imageOf(t, static.NewLayer(blob, types.OCIUncompressedLayer)))
	f, err := New(options(u.host + "/b:v1"))
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := f.Resolve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	tree, err := fetch.NewTree(t.TempDir(), fetch.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := f.Fetch(context.Background(), resolved, tree); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d KiB allocated for a layer of %d KiB", allocated>>10, size>>10)
	// The in-process registry serves from memory; the whole layer must not be allocated even once.
	if allocated > size/4 {
		t.Errorf("%d bytes allocated for a layer of %d", allocated, size)
	}
}

func TestT14References(t *testing.T) {
	port := strings.TrimPrefix(canary.Serve(t).URL, "http://127.0.0.1:")
	client := guard.AddressPolicy{InsecureHosts: []string{"localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "2130706433", "0177.0.0.1"}}.
		HTTPClient(fetch.DefaultLimits())
	t.Cleanup(client.CloseIdleConnections)
	for _, host := range []string{
		"localhost:" + port, "127.0.0.1:" + port, "[::ffff:127.0.0.1]:" + port, "[::1]:" + port, "2130706433:" + port,
		"0177.0.0.1:" + port, "169.254.169.254", "[fd00:ec2::254]", "0.0.0.0:" + port,
	} {
		for _, insecure := range []bool{false, true} {
			for _, o := range []Options{{Ref: host + "/b:v1"}, {Ref: host + "/b", SemVer: "*"}} {
				o.Insecure, o.Client, o.Limits = insecure, client, fetch.DefaultLimits()
				o.Keychain = one(strings.TrimSuffix(o.Ref, "/b:v1"), fetch.Login{Username: "u", Password: "CANARY"})
				_, _, err := pull(t, o)
				if r := fetch.ReasonOf(err); r != fetch.Refused && r != fetch.Unreachable || strings.Contains(err.Error(), "CANARY") {
					t.Errorf("%s: %v", host, err)
				}
			}
		}
	}
}

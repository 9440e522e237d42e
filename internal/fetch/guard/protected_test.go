// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/canary"
)

// cluster has an API server with a Service and another name, and an artifact server that listens everywhere.
func cluster() *Protected {
	p := NewProtected(
		Server{What: "the API server", Host: "kubernetes.default.svc"},
		Server{What: "the API server", Host: "API.example.org", Port: 6443},
		Server{What: "the API server", Host: "fd00::1", Port: 6443},
		Server{What: "the artifact server", Host: "sources.system.svc", Shared: true},
		Server{What: "the artifact server", Host: "artifacts.example.org", Shared: true},
		Server{What: "the artifact server", Port: 9090},
	)
	p.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		found, known := map[string][]netip.Addr{
			"kubernetes.default.svc": {netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("::ffff:10.96.0.2")},
			"API.example.org":        {netip.MustParseAddr("192.0.2.7")},
			"sources.system.svc":     {netip.MustParseAddr("10.96.0.9")},
			"artifacts.example.org":  {netip.MustParseAddr("192.0.2.8")},
		}[host]
		if !known {
			return nil, errors.New("no such host")
		}
		return found, nil
	}
	p.own = func() ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("fe80::1")}, nil
	}
	return p
}

func TestT14NamesOfTheCluster(t *testing.T) {
	policy := local()
	policy.Protected = cluster()
	through, requests, _ := proxy(t)
	way, err := url.Parse(through.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]*http.Client{
		"direct": policy.HTTPClient(fetch.DefaultLimits()), "proxied": policy.Client(fetch.DefaultLimits(), Access{Proxy: way}),
	} {
		for _, host := range []string{
			"kubernetes", "kubernetes.", "kubernetes.default", "Kubernetes.Default", "kubernetes.default.svc", "KUBERNETES.DEFAULT.SVC.",
			"kubernetes.default.svc.cluster.local", "kubernetes.default.svc.cluster.local.", "kubernetes.default.svc.corp.example",
			"kubernetes。default。svc", "ｋubernetes.default", "kubernetes%E3%80%82default", "kubernetes.default.svc:6443",
			"api.example.org", "api.example.org.", "sources", "sources.system", "sources.system.svc.cluster.local", "artifacts.example.org",
		} {
			if _, err := get(t, client, "https://"+host+"/x"); fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), " server, which is refused") {
				t.Errorf("%s: %s: %v", name, host, err)
			}
		}
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("the proxy saw %d requests", n)
	}
	for _, host := range []string{"kubernetes.other", "kubernetes.default.svcx", "x.kubernetes.default", "example.org", "sources.other.svc", "127.0.0.1", "localhost"} {
		if err := policy.Protected.checkName(host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, proxied := range []Access{{}, {Proxy: way}} {
		if _, err := policy.Dialer(proxied)(t.Context(), "tcp", "kubernetes.default:22"); fetch.ReasonOf(err) != fetch.Refused {
			t.Errorf("for SSH: %v", err)
		}
	}
}

func TestT14AddressesOfTheCluster(t *testing.T) {
	policy := AddressPolicy{Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}, Protected: cluster()}
	cases := map[string]struct {
		reason, target string
		allowed        bool
	}{
		"Service":        {"what the Service's name leads to", "10.96.0.1:443", false},
		"ServicePort":    {"at any port", "10.96.0.1:80", false},
		"ServiceSecond":  {"all of its addresses", "10.96.0.2:443", false},
		"ServiceMapped":  {"an IPv4 address in IPv6 clothes", "[::ffff:10.96.0.1]:443", false},
		"ServiceNAT64":   {"a translator connects to the inner one", "[64:ff9b::10.96.0.1]:443", false},
		"ServiceNext":    {"nothing but that", "10.96.0.3:443", true},
		"Name":           {"what its other name leads to", "192.0.2.7:6443", false},
		"Literal":        {"an address as it stands", "[fd00::1]:443", false},
		"LiteralZone":    {"a zone changes nothing", "[fd00::1%eth0]:443", false},
		"Artifacts":      {"what the Service's name leads to", "10.96.0.9:80", false},
		"Ingress":        {"others are behind it as well", "192.0.2.8:443", true},
		"Own":            {"this Pod", "10.1.2.3:9090", false},
		"OwnOther":       {"only that port is the artifact server's", "10.1.2.3:5000", true},
		"OwnLoopback":    {"also where loopback is allowed", "127.0.0.1:9090", false},
		"OwnLinkLocal":   {"also where link-local is allowed", "[fe80::1%eth0]:9090", false},
		"LoopbackOther":  {"only that port", "127.0.0.1:5000", true},
		"LoopbackMapped": {"in each spelling", "[::ffff:127.0.0.1]:9090", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := policy.checkTarget(t.Context(), netip.MustParseAddrPort(tc.target))
			if (err == nil) != tc.allowed || err != nil && fetch.ReasonOf(err) != fetch.Refused {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// TestT14ProtectedInTheDialer connects for real, also by a name and after a redirect.
func TestT14ProtectedInTheDialer(t *testing.T) {
	forbidden := canary.Serve(t)
	target, err := url.Parse(forbidden.URL)
	if err != nil {
		t.Fatal(err)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, forbidden.URL, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "done")
	}))
	t.Cleanup(other.Close)
	policy := local()
	policy.InsecureHosts = append(policy.InsecureHosts, "localhost", "[::ffff:127.0.0.1]", "kubernetes.default")
	policy.Protected = NewProtected(Server{What: "the API server", Host: "127.0.0.1", Port: portNumber(target.Port(), "")})
	client := policy.HTTPClient(fetch.DefaultLimits())
	if body, err := get(t, client, other.URL); err != nil || body != "done" {
		t.Errorf("the same address, another port: %q, %v", body, err)
	}
	for _, link := range []string{forbidden.URL, "http://localhost:" + target.Port(), "http://[::ffff:127.0.0.1]:" + target.Port(), other.URL + "/away"} {
		if _, err := get(t, client, link); fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), "that of the API server") {
			t.Errorf("%s: %v", link, err)
		}
	}
	if _, err := policy.Dialer(Access{})(t.Context(), "tcp", target.Host); fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("for SSH: %v", err)
	}
	proxied := policy.Client(fetch.DefaultLimits(), Access{Proxy: target})
	if _, err := get(t, proxied, other.URL); fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("as a proxy: %v", err)
	}
}

// TestT14AddressesMove: a server that cannot be resolved now keeps its last addresses, and is resolved again.
func TestT14AddressesMove(t *testing.T) {
	now, asked := time.Unix(0, 0), 0
	var where []netip.Addr
	p := NewProtected(Server{What: "the API server", Host: "api.example.org"})
	p.now = func() time.Time { return now }
	p.lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the look has no end")
		}
		asked++
		if where == nil {
			return nil, errors.New("no answer")
		}
		return where, nil
	}
	refused := func(address string) bool {
		return p.checkAddress(t.Context(), netip.AddrPortFrom(netip.MustParseAddr(address), 443)) != nil
	}
	for range 2 {
		if refused("192.0.2.1") || asked != 1 {
			t.Errorf("a name that does not resolve: asked %d times", asked)
		}
	}
	where, now = []netip.Addr{netip.MustParseAddr("192.0.2.1")}, now.Add(knownFor)
	if !refused("192.0.2.1") || asked != 2 {
		t.Errorf("it was found: asked %d times", asked)
	}
	where, now = nil, now.Add(knownFor)
	if !refused("192.0.2.1") || asked != 3 {
		t.Errorf("it is forgotten: asked %d times", asked)
	}
	where, now = []netip.Addr{netip.MustParseAddr("192.0.2.2")}, now.Add(knownFor)
	if refused("192.0.2.1") || !refused("192.0.2.2") {
		t.Error("it has moved")
	}
}

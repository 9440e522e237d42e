// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/satchel-dev/satchel/internal/endpoint"
)

func TestM39Parse(t *testing.T) {
	tests := map[string]struct{ reason, text, want string }{
		"name":              {"as usual", "quay.io", "quay.io"},
		"port":              {"as usual", "quay.io:5000", "quay.io:5000"},
		"zeros":             {"a dialer reads a number", "quay.io:00443", "quay.io:443"},
		"many zeros":        {"a dialer reads a number", "quay.io:0000000443", "quay.io:443"},
		"upper case":        {"DNS knows no case", "QUAY.io", "quay.io"},
		"dot":               {"the root of DNS", "quay.io.", "quay.io"},
		"dot and port":      {"the root of DNS", "quay.io.:0443", "quay.io:443"},
		"letters":           {"IDNA", "B\u00dcCHER.example:80", "xn--bcher-kva.example:80"},
		"wide letters":      {"IDNA maps them", "\uff51uay.io", "quay.io"},
		"wide digits":       {"IDNA maps them, and the dots", "\uff11\uff12\uff17\u30020\u30020\u30021", "127.0.0.1"},
		"IPv4":              {"as usual", "10.0.0.1:5000", "10.0.0.1:5000"},
		"IPv4 with dot":     {"it is dialled as it is named", "10.0.0.1.", "10.0.0.1"},
		"IPv6":              {"as usual", "[::1]:8443", "[::1]:8443"},
		"IPv6, long":        {"netip", "[0:0:0:0:0:0:0:1]:8443", "[::1]:8443"},
		"IPv6, zeros":       {"netip", "[0000::0001]", "[::1]"},
		"IPv6, upper case":  {"netip", "[FE80::A]", "[fe80::a]"},
		"IPv6, dotted tail": {"netip", "[64:ff9b::10.0.0.1]", "[64:ff9b::a00:1]"},
		"IPv4 in IPv6":      {"it is dialled as IPv4", "[::ffff:10.0.0.1]:80", "10.0.0.1:80"},
		"IPv4 in IPv6, hex": {"it is dialled as IPv4", "[0:0:0:0:0:ffff:0a00:0001]:080", "10.0.0.1:80"},
		"label":             {"a name of the cluster", "registry:443", "registry:443"},
		"underscore":        {"some have one", "my_registry.example:1", "my_registry.example:1"},

		"only a dot":       {"no host", ".:443", ""},
		"two dots":         {"no name", "quay..io", ""},
		"dots at the end":  {"no name", "quay.io..", ""},
		"begins with dot":  {"no name", ".quay.io", ""},
		"no host":          {"nothing", ":443", ""},
		"nothing":          {"nothing", "", ""},
		"port 0":           {"none listens", "quay.io:0", ""},
		"port 00":          {"none listens", "quay.io:00", ""},
		"port 65536":       {"beyond", "quay.io:65536", ""},
		"port 65979":       {"443 modulo 65536", "quay.io:65979", ""},
		"no port":          {"a colon too many", "quay.io:", ""},
		"sign":             {"strconv would take it", "quay.io:+443", ""},
		"underscores":      {"Go would take them", "quay.io:4_43", ""},
		"hexadecimal port": {"no port", "quay.io:0x1bb", ""},
		"two ports":        {"no port", "quay.io:443:443", ""},
		"IPv4, octal":      {"resolvers differ", "127.0.0.01", ""},
		"IPv4, short":      {"resolvers differ", "127.1:8443", ""},
		"IPv4, one number": {"resolvers differ", "2130706433", ""},
		"IPv4, hex":        {"resolvers differ", "0x7f.0.0.0x1", ""},
		"IPv4, 0x":         {"resolvers differ", "127.0.0.0x", ""},
		"IPv4, five parts": {"no address", "1.2.3.4.5", ""},
		"IPv4 in brackets": {"no IPv6 address", "[127.0.0.1]", ""},
		"name in brackets": {"no IPv6 address", "[quay.io]:443", ""},
		"bare IPv6":        {"where is the port?", "::1", ""},
		"open bracket":     {"no end", "[::1", ""},
		"after bracket":    {"no port", "[::1]443", ""},
		"after bracket .":  {"no port", "[::1].:443", ""},
		"unspecified":      {"Linux dials loopback", "0.0.0.0:8443", ""},
		"unspecified IPv6": {"Linux dials loopback", "[::]:8443", ""},
		"unspecified both": {"Linux dials loopback", "[::ffff:0.0.0.0]:8443", ""},
		"user":             {"no host", "user@quay.io", ""},
		"path":             {"no host", "quay.io/x", ""},
		"escape":           {"no host", "quay%2eio", ""},
		"hyphen":           {"an option", "-quay.io", ""},
		"blank":            {"no host", "quay.io ", ""},
		"long label":       {"DNS ends at 63", strings.Repeat("a", 64) + ".io", ""},
		"long name":        {"DNS ends at 253", strings.Repeat("a.", 127) + "io", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := endpoint.Parse(tc.text)
			if (err == nil) != (tc.want != "") || err == nil && got.String() != tc.want {
				t.Fatalf("%s: %q is %q, %v; want %q", tc.reason, tc.text, got, err, tc.want)
			}
			if err != nil {
				return
			}
			if again, err := endpoint.Parse(got.String()); err != nil || again != got {
				t.Errorf("%q, read again, is %q, %v", got, again, err)
			}
		})
	}
}

func TestM39SameOrigin(t *testing.T) {
	tests := map[string]struct {
		a, b string
		want bool
	}{
		"same":             {"https://quay.io/a", "https://quay.io/b", true},
		"case":             {"https://QUAY.io", "https://quay.io", true},
		"default port":     {"https://quay.io:0443", "https://quay.io", true},
		"default, plain":   {"http://quay.io:080", "http://quay.io", true},
		"empty port":       {"https://quay.io:", "https://quay.io", true},
		"ssh":              {"ssh://git@a.example:22/x", "ssh://git@a.example/y", true},
		"IPv6":             {"https://[0::1]:8443", "https://[::1]:8443", true},
		"dot":              {"https://quay.io.", "https://quay.io", false},
		"dot on both":      {"https://Quay.io.", "https://quay.io.:443", true},
		"address, dot":     {"https://10.0.0.1.", "https://10.0.0.1", false},
		"IPv4 in IPv6":     {"https://[::ffff:10.0.0.1]", "https://10.0.0.1", true},
		"scheme":           {"https://quay.io:80", "http://quay.io:80", false},
		"port":             {"https://quay.io:8443", "https://quay.io", false},
		"host":             {"https://quay.io.evil.example", "https://quay.io", false},
		"no host on both":  {"https://", "https://", false},
		"malformed, equal": {"https://a..b", "https://a..b", false},
	}
	for name, tc := range tests {
		a, failed := url.Parse(tc.a)
		b, err := url.Parse(tc.b)
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		if endpoint.SameOrigin(a, b) != tc.want || endpoint.SameOrigin(b, a) != tc.want {
			t.Errorf("%s: %s and %s", name, tc.a, tc.b)
		}
	}
}

func TestM39Matches(t *testing.T) {
	tests := map[string]struct {
		listed, at string
		want       bool
	}{
		"no port":         {"quay.io", "quay.io:443", true},
		"no port, plain":  {"quay.io", "quay.io:80", true},
		"no port, other":  {"quay.io", "quay.io:8443", false},
		"port":            {"quay.io:8443", "quay.io:08443", true},
		"other port":      {"quay.io:443", "quay.io:80", false},
		"other host":      {"quay.io", "quay.example:443", false},
		"another address": {"[::ffff:10.0.0.1]", "10.0.0.1:443", true},
	}
	for name, tc := range tests {
		listed, failed := endpoint.Parse(tc.listed)
		at, err := endpoint.Parse(tc.at)
		if err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		if listed.Matches(at) != tc.want {
			t.Errorf("%s: %s and %s", name, tc.listed, tc.at)
		}
	}
}

// dialled returns the address that Go connects to for a URL that has a number as host; "" if it would look up a name.
func dialled(u *url.URL) string {
	stop := errors.New("stop")
	var found string
	dialer := &net.Dialer{
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			found = address
			return stop
		},
		Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, stop }},
	}
	transport := &http.Transport{DialContext: dialer.DialContext}
	response, err := transport.RoundTrip((&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}).WithContext(context.Background()))
	if err == nil {
		_ = response.Body.Close()
	}
	target, err := netip.ParseAddrPort(found)
	if err != nil {
		return ""
	}
	return netip.AddrPortFrom(target.Addr().Unmap(), target.Port()).String()
}

// FuzzServer: what Go dials at the same address and port is one Server, and a Server is dialled where its spelling was.
func FuzzServer(f *testing.F) {
	for _, text := range []string{"127.0.0.1:08443", "[0:0:0:0:0:0:0:1]:8443", "[::ffff:127.0.0.1]:1", "127.1:1", "0x7f.1:1", "127.0.0.1.:80", "quay.io:0443", ".:443", "[::]:1", "\uff11.1.1.1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		server, err := endpoint.Parse(text)
		if err != nil {
			return
		}
		if again, err := endpoint.Parse(server.String()); err != nil || again != server {
			t.Fatalf("%q is %q, and that %q, %v", text, server, again, err)
		}
		address, err := netip.ParseAddr(server.Host)
		if err != nil {
			return // a name: what it resolves to is no matter of its spelling
		}
		server = server.On("http")
		want := netip.AddrPortFrom(address, server.Port).String()
		if got := dialled(&url.URL{Scheme: "http", Host: server.String(), Path: "/"}); got != want {
			t.Errorf("%q is %q, and is dialled at %q", text, server, got)
		}
		if got := dialled(&url.URL{Scheme: "http", Host: text, Path: "/"}); got != "" && got != want {
			t.Errorf("%q is %q, and is itself dialled at %q", text, server, got)
		}
	})
}

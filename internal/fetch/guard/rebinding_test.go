// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/satchel-dev/satchel/internal/fetch"
	"github.com/satchel-dev/satchel/tests/canary"
)

// names is a DNS server that changes its answers between queries.
type names struct {
	mutex   sync.Mutex
	answers map[string][][]string // by name: the addresses, or "=" and another name, of each answer; the last one stays
}

// resolveBy has all names of this process looked up at a server of its own.
func resolveBy(t *testing.T, answers map[string][][]string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{answers: answers}
	go n.serve(conn)
	usual := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = usual
		_ = conn.Close()
	})
}

func (n *names) serve(conn net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		size, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var question dnsmessage.Message
		if question.Unpack(buffer[:size]) != nil || len(question.Questions) != 1 {
			continue
		}
		answer := n.answer(question)
		if raw, err := answer.Pack(); err == nil {
			_, _ = conn.WriteTo(raw, from)
		}
	}
}

func (n *names) answer(question dnsmessage.Message) dnsmessage.Message {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	asked := question.Questions[0]
	m := dnsmessage.Message{Questions: question.Questions}
	m.Header = dnsmessage.Header{ID: question.ID, Response: true, Authoritative: true, RecursionAvailable: true}
	name := strings.ToLower(strings.TrimSuffix(asked.Name.String(), "."))
	left, known := n.answers[name]
	if !known {
		m.RCode = dnsmessage.RCodeNameError
		return m
	}
	for _, text := range left[0] {
		if other, alias := strings.CutPrefix(text, "="); alias {
			target := dnsmessage.MustNewName(other + ".")
			m.Answers = append(m.Answers, resource(asked.Name, dnsmessage.TypeCNAME, &dnsmessage.CNAMEResource{CNAME: target}))
			for _, behind := range n.answers[other][0] {
				m.Answers = append(m.Answers, addresses(target, asked.Type, behind)...)
			}
			continue
		}
		m.Answers = append(m.Answers, addresses(asked.Name, asked.Type, text)...)
	}
	if asked.Type == dnsmessage.TypeA && len(left) > 1 {
		n.answers[name] = left[1:]
	}
	return m
}

// addresses is the record for an address, if it is of the type.
func addresses(name dnsmessage.Name, kind dnsmessage.Type, text string) []dnsmessage.Resource {
	address := netip.MustParseAddr(text)
	switch {
	case address.Is4() && kind == dnsmessage.TypeA:
		return []dnsmessage.Resource{resource(name, kind, &dnsmessage.AResource{A: address.As4()})}
	case address.Is6() && kind == dnsmessage.TypeAAAA:
		return []dnsmessage.Resource{resource(name, kind, &dnsmessage.AAAAResource{AAAA: address.As16()})}
	}
	return nil
}

func resource(name dnsmessage.Name, kind dnsmessage.Type, body dnsmessage.ResourceBody) dnsmessage.Resource {
	return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: name, Type: kind, Class: dnsmessage.ClassINET}, Body: body}
}

// TestM12NamesOfDeniedAddresses asks for names that lead to this machine, in each form of an answer.
func TestM12NamesOfDeniedAddresses(t *testing.T) {
	_, port, err := net.SplitHostPort(strings.TrimPrefix(canary.Serve(t).URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string][]string{
		"plain.example": {"127.0.0.1"}, "other.example": {"127.0.0.53"}, "six.example": {"::1"}, "mapped.example": {"::ffff:127.0.0.1"},
		"translated.example": {"64:ff9b::7f00:1"}, "metadata.example": {"169.254.169.254"}, "metadata6.example": {"fd00:ec2::254"},
		"zero.example": {"0.0.0.0"}, "both.example": {"127.0.0.1", "::1"}, "alias.example": {"=plain.example"},
	}
	answers, hosts := map[string][][]string{}, []string{}
	for name, found := range forms {
		answers[name], hosts = [][]string{found}, append(hosts, name)
	}
	resolveBy(t, answers)
	for _, host := range hosts {
		for _, asked := range []string{host, strings.ToUpper(host), host + "."} {
			client := AddressPolicy{InsecureHosts: []string{asked}}.HTTPClient(fetch.DefaultLimits())
			if _, err := get(t, client, "http://"+asked+":"+port); fetch.ReasonOf(err) != fetch.Refused || !strings.Contains(err.Error(), " is denied (") {
				t.Errorf("%s: %v", asked, err)
			}
			if _, err := (AddressPolicy{}).Dialer(Access{})(t.Context(), "tcp", net.JoinHostPort(asked, port)); fetch.ReasonOf(err) != fetch.Refused {
				t.Errorf("%s, without HTTP: %v", asked, err)
			}
		}
	}
}

// TestM12Rebinding has a name that leads to a server that may be reached until it was asked for, and then to this machine.
func TestM12Rebinding(t *testing.T) {
	_, port, err := net.SplitHostPort(strings.TrimPrefix(canary.Serve(t).URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Skipf("this machine has no second loopback address: %v", err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{ //nolint:gosec // a test server
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close") // so that the name is looked up again
			if r.URL.Path == "/away" {
				http.Redirect(w, r, "/", http.StatusFound)
				return
			}
			_, _ = io.WriteString(w, "done")
		}),
	}}
	server.Start()
	t.Cleanup(server.Close)
	first, then := []string{"127.0.0.2"}, []string{"127.0.0.1"}
	resolveBy(t, map[string][][]string{
		"moves.example": {first, then}, "redirects.example": {first, then}, "both.example": {{"127.0.0.1", "127.0.0.2"}},
	})
	client := AddressPolicy{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, InsecureHosts: []string{"moves.example", "redirects.example", "both.example"},
	}.HTTPClient(fetch.DefaultLimits())
	if body, err := get(t, client, "http://moves.example:"+port); err != nil || body != "done" {
		t.Errorf("before: %q, %v", body, err)
	}
	if _, err := get(t, client, "http://moves.example:"+port); fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("after it moved: %v", err)
	}
	if _, err := get(t, client, "http://redirects.example:"+port+"/away"); fetch.ReasonOf(err) != fetch.Refused {
		t.Errorf("moved between a request and the redirect: %v", err)
	}
	if body, err := get(t, client, "http://both.example:"+port); err == nil && body != "done" {
		t.Errorf("of two addresses one may be reached: %q", body)
	}
}

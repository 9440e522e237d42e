// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/satchel-dev/satchel/internal/endpoint"
	"github.com/satchel-dev/satchel/internal/fetch"
)

// Server is a server of the cluster itself.
type Server struct {
	// What says for people which one it is.
	What string
	// Host is its name or address. A Service, "name.namespace.svc", is meant under all its names: "name", "name.namespace",
	// and with any domain of a cluster. Without a host it is what listens on all addresses of this machine.
	Host string
	// Port is for addresses that it shares: those of loopback, and of this machine.
	Port uint16
	// Shared tells that a name, unless it is a Service's, may lead to addresses of other servers as well, such as those of an
	// ingress: then only the name is meant.
	Shared bool
}

// Protected are servers that no source may connect to, whatever the flags say: neither by their names nor by the addresses
// that their names resolve to.
type Protected struct {
	servers []Server
	lookup  func(ctx context.Context, host string) ([]netip.Addr, error)
	own     func() ([]netip.Addr, error)
	now     func() time.Time

	mutex sync.Mutex
	until time.Time
	known [][]netip.Addr // by server
}

const (
	// knownFor is how long addresses are believed; lookUpTimeout bounds one look for them.
	knownFor      = 30 * time.Second
	lookUpTimeout = 2 * time.Second
)

// NewProtected returns the protection of servers, which are looked for when something is connected to.
func NewProtected(servers ...Server) *Protected {
	return &Protected{servers: servers, lookup: lookUp, own: ownAddresses, now: time.Now, known: make([][]netip.Addr, len(servers))}
}

func lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// ownAddresses are those of this machine, as containers see it.
func ownAddresses() ([]netip.Addr, error) {
	networks, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var found []netip.Addr
	for _, network := range networks {
		if prefix, err := netip.ParsePrefix(network.String()); err == nil {
			found = append(found, prefix.Addr())
		}
	}
	return found, nil
}

// checkName refuses the names of protected servers. A name that leads to one is refused when its address is known.
func (p *Protected) checkName(host string) error {
	if p == nil {
		return nil
	}
	host = canonicalHost(host)
	for _, server := range p.servers {
		if server.isNamed(host) {
			return fetch.Errorf(fetch.Refused, "%s is %s, which is refused", fetch.Quote(host), server.What)
		}
	}
	return nil
}

// checkAddress refuses the addresses of protected servers. An IPv6 address that stands for an IPv4 address is judged as both.
func (p *Protected) checkAddress(ctx context.Context, target netip.AddrPort) error {
	if p == nil {
		return nil
	}
	address := target.Addr().Unmap().WithZone("")
	forms := append(embedded(address), address)
	for i, known := range p.addresses(ctx) {
		for _, each := range known {
			if slices.Contains(forms, each) && p.servers[i].isAt(each, target.Port()) {
				return fetch.Errorf(fetch.Refused, "the address %s is that of %s, which is refused", address, p.servers[i].What)
			}
		}
	}
	return nil
}

// addresses returns where the servers are, as far as that is known. A server that cannot be resolved now keeps its last addresses.
func (p *Protected) addresses(ctx context.Context) [][]netip.Addr {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.now().Before(p.until) {
		return p.known
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookUpTimeout)
	defer cancel()
	fresh := make([][]netip.Addr, len(p.servers))
	for i, server := range p.servers {
		found, err := p.find(ctx, server)
		if err != nil {
			found = p.known[i]
		}
		fresh[i] = found
	}
	p.known, p.until = fresh, p.now().Add(knownFor)
	return fresh
}

func (p *Protected) find(ctx context.Context, server Server) ([]netip.Addr, error) {
	if server.Host == "" {
		return p.own()
	}
	if address, err := netip.ParseAddr(server.Host); err == nil {
		return []netip.Addr{address.Unmap()}, nil
	}
	if _, service := serviceOf(server.Host); server.Shared && !service {
		return nil, nil
	}
	found, err := p.lookup(ctx, server.Host)
	for i, address := range found {
		found[i] = address.Unmap().WithZone("")
	}
	return found, err
}

// isAt tells whether a port of an address is the server's. All of an address are, unless others listen there as well.
func (s Server) isAt(address netip.Addr, port uint16) bool {
	return port == s.Port || s.Host != "" && !address.IsLoopback()
}

// isNamed tells whether a name is the server's. Addresses are judged with their port.
func (s Server) isNamed(host string) bool {
	if _, err := netip.ParseAddr(s.Host); err == nil || s.Host == "" || s.Host == "localhost" {
		return false
	}
	if host == canonicalHost(s.Host) {
		return true
	}
	name, service := serviceOf(s.Host)
	short, _, _ := strings.Cut(name, ".")
	return service && (host == short || host == name || host == name+".svc" || strings.HasPrefix(host, name+".svc."))
}

// serviceOf returns "name.namespace" of a name that is a Service's.
func serviceOf(host string) (string, bool) {
	labels := strings.SplitN(canonicalHost(host), ".", 4)
	if len(labels) < 3 || labels[2] != "svc" {
		return "", false
	}
	return labels[0] + "." + labels[1], true
}

// canonicalHost is the form in which hosts are compared. What has none, such as a number in an unusual form, is only put in lower
// case.
func canonicalHost(host string) string {
	if canonical, err := endpoint.Host(host); err == nil {
		return canonical
	}
	return strings.TrimRight(strings.ToLower(host), ".")
}

// portNumber reads a port, "" as the one of the scheme.
func portNumber(port, scheme string) uint16 {
	if port == "" && scheme == "https" {
		return 443
	}
	if port == "" {
		return 80
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0
	}
	return uint16(number)
}

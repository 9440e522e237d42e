// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/internal/fetch"
)

// AddressPolicy decides which servers may be reached. The decision is made in the dialer, on the address that a name
// resolved to, at each connection: names, redirects, spellings and DNS answers that change in between cannot get
// around it.
type AddressPolicy struct {
	// Allow lists addresses that may be reached although they are denied by default.
	Allow []netip.Prefix
	// Deny lists addresses that may not be reached; it beats Allow.
	Deny []netip.Prefix
	// InsecureHosts lists the hosts, "name" or "name:port", that may be spoken to over plain HTTP.
	InsecureHosts []string
	// Protected are the cluster's own servers, which may not be reached whatever is allowed; nil for none.
	Protected *Protected
}

// denied lists the addresses that are denied by default: those of this machine, of its network segment, of the cloud's
// control plane, and unassigned ones. Sources: the IANA special-purpose address registries, and the cloud providers'
// documentation for the addresses of their metadata services.
var denied = []struct {
	what   string
	prefix netip.Prefix
}{
	{"metadata service", netip.MustParsePrefix("169.254.169.254/32")},
	{"metadata service", netip.MustParsePrefix("100.100.100.200/32")},
	{"metadata service", netip.MustParsePrefix("168.63.129.16/32")},
	{"metadata service", netip.MustParsePrefix("192.0.0.192/32")},
	{"metadata service", netip.MustParsePrefix("fd00:ec2::/32")},          // AWS: instances, EKS Pod Identity (::23), DNS, time
	{"metadata service", netip.MustParsePrefix("fd20:ce::254/128")},       // Google Cloud
	{"metadata service", netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128")}, // Oracle Cloud
	{"metadata service", netip.MustParsePrefix("fd00:42::42/128")},        // Scaleway
	{"loopback", netip.MustParsePrefix("127.0.0.0/8")},
	{"loopback", netip.MustParsePrefix("::1/128")},
	{"unspecified", netip.MustParsePrefix("0.0.0.0/8")},
	{"unspecified", netip.MustParsePrefix("::/128")},
	{"link-local", netip.MustParsePrefix("169.254.0.0/16")},
	{"link-local", netip.MustParsePrefix("fe80::/10")},
	{"multicast", netip.MustParsePrefix("224.0.0.0/4")},
	{"multicast", netip.MustParsePrefix("ff00::/8")},
	{"reserved", netip.MustParsePrefix("240.0.0.0/4")},
	// Who runs a translator on the prefix for own use decides where in it the IPv4 address stands (RFC 8215, RFC 6052).
	{"NAT64 for local use", netip.MustParsePrefix("64:ff9b:1::/48")},
}

// embedding lists the IPv6 forms that carry an IPv4 address, and the byte at which it stands: RFC 4291, 6052, 8215,
// 3056, 4380 (inverted). A translator on the way would connect to that address.
var embedding = []struct {
	prefix   netip.Prefix
	at       int
	inverted bool
}{
	{netip.MustParsePrefix("::/96"), 12, false},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12, false},
	{netip.MustParsePrefix("64:ff9b::/96"), 12, false},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12, false}, // one place of several, for --egress-deny
	{netip.MustParsePrefix("2002::/16"), 2, false},
	{netip.MustParsePrefix("2001::/32"), 4, false},
	{netip.MustParsePrefix("2001::/32"), 12, true},
}

// Check tells why an address may not be reached, as an *Error; nil when it may and is not that of a protected server. An
// IPv6 address that stands for an IPv4 address is judged as both.
func (p AddressPolicy) Check(address netip.Addr) error {
	address = address.Unmap().WithZone("")
	forms := append(embedded(address), address)
	for _, form := range forms {
		if containedIn(p.Deny, form) {
			return fetch.Errorf(fetch.Refused, "the address %s is denied by --egress-deny", address)
		}
	}
	if containedIn(p.Allow, address) {
		return nil
	}
	for _, form := range forms {
		if what := deniedAs(form); what != "" && !containedIn(p.Allow, form) {
			return fetch.Errorf(fetch.Refused, "the address %s is denied (%s): only --egress-allow can permit it", address, what)
		}
	}
	return nil
}

// deniedAs names the class for which an address is denied by default, "" when it is not.
func deniedAs(address netip.Addr) string {
	for _, d := range denied {
		if d.prefix.Contains(address) {
			return d.what
		}
	}
	return ""
}

func containedIn(prefixes []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}

// embedded returns the IPv4 addresses that an IPv6 address stands for.
func embedded(address netip.Addr) []netip.Addr {
	if !address.Is6() {
		return nil
	}
	var found []netip.Addr
	bytes := address.As16()
	for _, form := range embedding {
		if !form.prefix.Contains(address) {
			continue
		}
		inner := [4]byte(bytes[form.at : form.at+4])
		if form.inverted {
			for i := range inner {
				inner[i] = ^inner[i]
			}
		}
		found = append(found, netip.AddrFrom4(inner))
	}
	return found
}

// Insecure tells whether a host, "name" or "name:port", may be spoken to over plain HTTP. It has to be written as it is listed, but
// for letter case: the URL is dialled as it is written, and what is not recognized is refused.
func (p AddressPolicy) Insecure(host string) bool {
	name := host
	if only, _, err := net.SplitHostPort(host); err == nil {
		name = only
	}
	name = strings.Trim(name, "[]")
	return slices.ContainsFunc(p.InsecureHosts, func(listed string) bool {
		return strings.EqualFold(listed, host) || strings.EqualFold(strings.Trim(listed, "[]"), name)
	})
}

// BindFlags adds the flags of the policy.
func (p *AddressPolicy) BindFlags(fs *pflag.FlagSet) {
	p.BindAddressFlags(fs, "that sources may be fetched from", "that sources may not be fetched from")
	fs.StringSliceVar(&p.InsecureHosts, "insecure-hosts", p.InsecureHosts,
		"Hosts (name or name:port, comma-separated) that may be spoken to over plain HTTP.")
}

// BindAddressFlags adds the flags of the two lists of addresses, each described by what may, or may not, be done there.
func (p *AddressPolicy) BindAddressFlags(fs *pflag.FlagSet, may, mayNot string) {
	fs.Var((*prefixes)(&p.Allow), "egress-allow",
		"Addresses (CIDR or single, comma-separated) "+may+" although they are denied by "+
			"default: loopback, link-local, metadata services, multicast, reserved, 64:ff9b:1::/48.")
	fs.Var((*prefixes)(&p.Deny), "egress-deny",
		"Addresses (CIDR or single, comma-separated) "+mayNot+"; beats --egress-allow.")
}

// prefixes is a flag value: a list of networks or single addresses.
type prefixes []netip.Prefix

// Set appends the networks of one use of the flag.
func (p *prefixes) Set(value string) error {
	for part := range strings.SplitSeq(value, ",") {
		prefix, err := parsePrefix(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		*p = append(*p, prefix)
	}
	return nil
}

// String lists the networks.
func (p *prefixes) String() string {
	texts := make([]string, 0, len(*p))
	for _, prefix := range *p {
		texts = append(texts, prefix.String())
	}
	return strings.Join(texts, ",")
}

// Type names the value in the help text.
func (*prefixes) Type() string { return "networks" }

func parsePrefix(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a network such as 10.0.0.0/8", text)
	}
	return prefix.Masked(), nil
}

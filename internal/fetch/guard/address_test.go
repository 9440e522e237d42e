// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/netip"
	"testing"

	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/internal/fetch"
)

func TestT14AddressPolicy(t *testing.T) {
	prefix := func(s string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(s)} }
	cases := map[string]struct {
		reason  string
		policy  AddressPolicy
		address string
		allowed bool
	}{
		"Public":          {"the normal case", AddressPolicy{}, "93.184.216.34", true},
		"Public6":         {"the normal case", AddressPolicy{}, "2606:2800:220:1::1", true},
		"Private":         {"registries inside the cluster", AddressPolicy{}, "10.96.0.10", true},
		"UniqueLocal":     {"registries inside the cluster", AddressPolicy{}, "fd00::10", true},
		"Loopback":        {"the controller itself", AddressPolicy{}, "127.0.0.1", false},
		"LoopbackHigh":    {"all of 127/8", AddressPolicy{}, "127.255.0.9", false},
		"Loopback6":       {"the controller itself", AddressPolicy{}, "::1", false},
		"Mapped":          {"an IPv4 address in IPv6 clothes", AddressPolicy{}, "::ffff:127.0.0.1", false},
		"Compatible":      {"the older form", AddressPolicy{}, "::127.0.0.1", false},
		"Translated":      {"the SIIT form", AddressPolicy{}, "::ffff:0:127.0.0.1", false},
		"NAT64":           {"a translator connects to the inner one", AddressPolicy{}, "64:ff9b::169.254.169.254", false},
		"NAT64Public":     {"which may be harmless", AddressPolicy{}, "64:ff9b::93.184.216.34", true},
		"NAT64Local":      {"the prefix for own use", AddressPolicy{}, "64:ff9b:1::127.0.0.1", false},
		"NAT64LocalHigh":  {"169.254.169.254 behind a /48, where RFC 6052 puts it", AddressPolicy{}, "64:ff9b:1:a9fe:a9:fe00::", false},
		"NAT64LocalAny":   {"the position of its IPv4 address is unknown", AddressPolicy{}, "64:ff9b:1::93.184.216.34", false},
		"NAT64LocalLast":  {"all of the prefix", AddressPolicy{}, "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", false},
		"NAT64LocalNext":  {"nothing but the prefix", AddressPolicy{}, "64:ff9b:2::1", true},
		"NAT64LocalOpen":  {"an administrator allows the translator", AddressPolicy{Allow: prefix("64:ff9b:1::/48")}, "64:ff9b:1::93.184.216.34", true},
		"NAT64LocalInner": {"allowing an IPv4 address opens no translator", AddressPolicy{Allow: prefix("93.184.216.34/32")}, "64:ff9b:1::93.184.216.34", false},
		"NAT64LocalDeny":  {"the stronger list", AddressPolicy{Allow: prefix("64:ff9b:1::/48"), Deny: prefix("10.0.0.0/8")}, "64:ff9b:1::10.0.0.1", false},
		"6to4":            {"2002:7f00:1:: is 127.0.0.1", AddressPolicy{}, "2002:7f00:1::", false},
		"TeredoServer":    {"its server is 127.0.0.1", AddressPolicy{}, "2001:0:7f00:1::", false},
		"TeredoClient":    {"its client is 127.0.0.1, inverted", AddressPolicy{}, "2001:0:5db8:d822::80ff:fffe", false},
		"Unspecified":     {"connects to this machine", AddressPolicy{}, "0.0.0.0", false},
		"Unspecified6":    {"connects to this machine", AddressPolicy{}, "::", false},
		"ZeroNetwork":     {"connects to this machine on some systems", AddressPolicy{}, "0.1.2.3", false},
		"Metadata":        {"gives away the node's credentials", AddressPolicy{}, "169.254.169.254", false},
		"MetadataAlibaba": {"gives away the node's credentials", AddressPolicy{}, "100.100.100.200", false},
		"MetadataAzure":   {"the wire server", AddressPolicy{}, "168.63.129.16", false},
		"MetadataAWS6":    {"gives away the node's credentials", AddressPolicy{}, "fd00:ec2::254", false},
		"M29PodIdentity6": {"EKS Pod Identity gives away the Pod's credentials", AddressPolicy{}, "fd00:ec2::23", false},
		"M29PodIdentity":  {"EKS Pod Identity gives away the Pod's credentials", AddressPolicy{}, "169.254.170.23", false},
		"M29AWS6":         {"all local services of AWS", AddressPolicy{}, "fd00:ec2::123", false},
		"M29Google6":      {"gives away the node's credentials", AddressPolicy{}, "fd20:ce::254", false},
		"M29Oracle6":      {"gives away the node's credentials", AddressPolicy{}, "fd00:c1::a9fe:a9fe", false},
		"M29Scaleway6":    {"gives away the node's credentials", AddressPolicy{}, "fd00:42::42", false},
		"M29PodIdentityY": {"the administrator may permit it", AddressPolicy{Allow: prefix("fd00:ec2::23/128")}, "fd00:ec2::23", true},
		"LinkLocal":       {"the node's segment", AddressPolicy{}, "169.254.1.1", false},
		"LinkLocal6":      {"the node's segment", AddressPolicy{}, "fe80::1", false},
		"LinkLocalZone":   {"a zone changes nothing", AddressPolicy{}, "fe80::1%eth0", false},
		"Multicast":       {"no server to fetch from", AddressPolicy{}, "224.0.0.1", false},
		"Multicast6":      {"no server to fetch from", AddressPolicy{}, "ff02::1", false},
		"Broadcast":       {"no server to fetch from", AddressPolicy{}, "255.255.255.255", false},
		"Allowed":         {"the demo allows loopback", AddressPolicy{Allow: prefix("127.0.0.0/8")}, "127.0.0.1", true},
		"AllowedMapped":   {"in each spelling", AddressPolicy{Allow: prefix("127.0.0.0/8")}, "::ffff:127.0.0.1", true},
		"AllowedOnlyThat": {"but nothing else", AddressPolicy{Allow: prefix("127.0.0.0/8")}, "169.254.169.254", false},
		"Denied":          {"the API server, say", AddressPolicy{Deny: prefix("10.96.0.1/32")}, "10.96.0.1", false},
		"DeniedInner":     {"also through a translator", AddressPolicy{Deny: prefix("10.96.0.1/32")}, "64:ff9b::10.96.0.1", false},
		"DenyBeatsAllow":  {"the stronger list", AddressPolicy{Deny: prefix("10.0.0.0/8"), Allow: prefix("0.0.0.0/0")}, "10.0.0.1", false},
		"DenyBeatsAllow6": {"also on the inner address", AddressPolicy{Deny: prefix("10.0.0.0/8"), Allow: prefix("::/0")}, "64:ff9b::10.0.0.1", false},
		"AllowAll":        {"for a command line tool", AddressPolicy{Allow: prefix("::/0")}, "::1", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.policy.Check(netip.MustParseAddr(tc.address))
			if (err == nil) != tc.allowed || err != nil && fetch.ReasonOf(err) != fetch.Refused {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestT15InsecureHosts(t *testing.T) {
	policy := AddressPolicy{InsecureHosts: []string{"registry.local:5000", "Git.local", "::1"}}
	cases := map[string]bool{
		"registry.local:5000": true, "REGISTRY.local:5000": true, "registry.local": false, "registry.local:5001": false,
		"git.local": true, "git.local:3000": true, "evil.git.local": false, "git.local.evil": false,
		"[::1]:80": true, "::1": true, "127.0.0.1": false, "": false,
		"git.local.": false, "registry.local.:5000": false, "registry.local:5000.": false, "registry.local:05000": false, "registry.local:": false,
		"registry.local:50000": false, "registry.local:5000@evil": false, "registry.local:5000,evil": false, "xn--git-yla.local": false, "gıt.local": false,
		"[0:0:0:0:0:0:0:1]": false, "[::ffff:127.0.0.1]": false, "[::1%25eth0]": false, "[::2]": false, "*": false, "local": false,
	}
	for host, want := range cases {
		if got := policy.Insecure(host); got != want {
			t.Errorf("%q: got %v", host, got)
		}
	}
}

func TestPolicyFlags(t *testing.T) {
	var policy AddressPolicy
	limits := fetch.DefaultLimits()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	policy.BindFlags(flags)
	limits.BindFlags(flags)
	err := flags.Parse([]string{
		"--egress-allow=127.0.0.1,::1", "--egress-allow=10.1.2.3/8", "--egress-deny=::ffff:10.96.0.1",
		"--insecure-hosts=a:1,b", "--max-layers=3",
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := (*prefixes)(&policy.Allow).String(); got != "127.0.0.1/32,::1/128,10.0.0.0/8" {
		t.Error(got)
	}
	if got := (*prefixes)(&policy.Deny).String(); got != "10.96.0.1/32" {
		t.Error(got)
	}
	if !policy.Insecure("b") || limits.Layers != 3 {
		t.Error("flags without effect")
	}
	for _, bad := range []string{"localhost", "10.0.0.0/33", ""} {
		if err := flags.Parse([]string{"--egress-allow=" + bad}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func FuzzAddressPolicy(f *testing.F) {
	for _, seed := range []string{"127.0.0.1", "::1", "64:ff9b::127.0.0.1", "2002:7f00:1::", "8.8.8.8", "fe80::1%x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return
		}
		refused := AddressPolicy{}.Check(address) != nil
		plain := address.Unmap()
		if (plain.IsLoopback() || plain.IsLinkLocalUnicast() || plain.IsMulticast() || plain.IsUnspecified()) && !refused {
			t.Errorf("%s may be reached", address)
		}
		if plain.Is4() {
			for _, form := range []string{"::ffff:", "64:ff9b::", "::"} {
				other := netip.MustParseAddr(form + plain.String())
				if (AddressPolicy{}.Check(other) != nil) != refused {
					t.Errorf("%s and %s are judged differently", address, other)
				}
			}
		}
		everything := AddressPolicy{Deny: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")},
			Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}
		if everything.Check(address) == nil {
			t.Errorf("%s may be reached although everything is denied", address)
		}
	})
}

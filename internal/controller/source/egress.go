// SPDX-License-Identifier: Apache-2.0

package source

import (
	"net/netip"
	"net/url"
)

// apiServers gives the addresses of the API server, which no source may name:
// the one that this process talks to and the one that its Pod was told of. An
// API server on loopback shares its address with everything else on that
// machine, and loopback is refused by default anyway.
func apiServers(host, service string) []netip.Prefix {
	var addresses []netip.Prefix
	if parsed, err := url.Parse(host); err == nil && parsed.Hostname() != "" {
		host = parsed.Hostname()
	}
	for _, candidate := range []string{host, service} {
		address, err := netip.ParseAddr(candidate)
		if err != nil || address.IsLoopback() {
			continue
		}
		prefix := netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen())
		if len(addresses) == 0 || addresses[0] != prefix {
			addresses = append(addresses, prefix)
		}
	}
	return addresses
}

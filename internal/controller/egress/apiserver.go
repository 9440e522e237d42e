// SPDX-License-Identifier: Apache-2.0

// Package egress knows which servers of the cluster itself no tenant may have a
// controller connect to.
package egress

import (
	"net/netip"
	"net/url"
)

// APIServers gives the addresses of the API server, which no source or kubeconfig may name:
// the one that this process talks to and the one that its Pod was told of. An
// API server on loopback shares its address with everything else on that
// machine, and loopback is refused by default anyway.
func APIServers(host, service string) []netip.Prefix {
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

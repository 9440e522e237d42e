// SPDX-License-Identifier: Apache-2.0

// Package endpoint has the one form in which hosts and ports are compared: a host in lower case and in ASCII without a dot at its
// end, or an IP address as net/netip writes it, and a port as a number. Servers that are dialled at the same address and port
// by their spelling are equal.
//
// Compare values of this package, never hosts or ports as text: 0443 is port 443, and [0:0:0:0:0:0:0:1] is [::1]. Where a rule depends
// on it, contact what was compared: build the URL from Server.String.
package endpoint

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// Ports of schemes.
const (
	HTTPS = 443
	HTTP  = 80
	SSH   = 22
)

// Server is a host with a port. Equal values are one server. The zero value is none.
type Server struct {
	// Host is in the form that Host returns: without brackets.
	Host string
	// Port is 0 where none was given.
	Port uint16
}

// Parse reads "host", "host:port", "[IPv6]" or "[IPv6]:port".
func Parse(text string) (Server, error) {
	host, rest := text, ""
	if inner, found := strings.CutPrefix(text, "["); found {
		host, rest, found = strings.Cut(inner, "]")
		if !found || !strings.Contains(host, ":") || rest != "" && rest[0] != ':' {
			return Server{}, fmt.Errorf("%.100q is no host with a port: write an IPv6 address in brackets", text)
		}
	} else if at := strings.IndexByte(text, ':'); at >= 0 {
		host, rest = text[:at], text[at:]
	}
	var s Server
	var err error
	if rest != "" {
		if s.Port, err = port(rest[1:]); err != nil {
			return Server{}, err
		}
	}
	s.Host, err = Host(host)
	if err != nil {
		return Server{}, err
	}
	return s, nil
}

// OfURL returns the server of a URL, with the port of its scheme where the URL has none. Since a URL is dialled as it is written, a
// host with a dot at its end is another one than that without: resolvers look it up without search domains.
func OfURL(u *url.URL) (Server, error) {
	s, err := Parse(strings.TrimSuffix(u.Host, ":"))
	if err != nil {
		return Server{}, err
	}
	if strings.HasSuffix(u.Hostname(), ".") {
		s.Host += "."
	}
	return s.On(u.Scheme), nil
}

// port reads a port: leading zeros do not count, as for a dialer.
func port(text string) (uint16, error) {
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, fmt.Errorf("%.100q is no port", text)
	}
	digits := strings.TrimLeft(text, "0")
	number, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("the port %.100q is not between 1 and 65535", text)
	}
	return uint16(number), nil
}

const (
	maxHost  = 253
	maxLabel = 63
)

// Host returns the form of a name or an IP address, without brackets, in which it is compared. A number in another form
// than that of an IP address (127.1, 0x7f000001) is refused: resolvers differ about it.
func Host(text string) (string, error) {
	name := text
	if strings.ContainsFunc(name, func(r rune) bool { return r >= 0x80 }) {
		ascii, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return "", fmt.Errorf("the host %.100q is no valid name", text)
		}
		name = ascii
	}
	if address, err := netip.ParseAddr(strings.TrimSuffix(name, ".")); err == nil {
		return ofAddress(address)
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	labels := strings.Split(name, ".")
	switch {
	case len(name) > maxHost || slices.ContainsFunc(labels, malformed):
		return "", fmt.Errorf("the host %.100q is no valid name", text)
	case numeric(labels[len(labels)-1]):
		return "", fmt.Errorf("the host %.100q is a number in an unusual form: write the IP address as usual", text)
	}
	return name, nil
}

// ofAddress returns the form of an address. One that stands for an IPv4 address is dialled as that.
func ofAddress(address netip.Addr) (string, error) {
	if address = address.Unmap(); address.IsUnspecified() {
		return "", errors.New("the unspecified address is no server's: write the address of the server")
	}
	return address.String(), nil
}

// malformed tells whether no server has a name with this label.
func malformed(label string) bool {
	return label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' ||
		strings.ContainsFunc(label, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' })
}

// numeric tells whether resolvers may take a name with this last label for an IPv4 address.
func numeric(label string) bool {
	digits, base := label, "0123456789"
	if hex, found := strings.CutPrefix(label, "0x"); found {
		digits, base = hex, "0123456789abcdef"
	}
	return strings.Trim(digits, base) == ""
}

// defaultPorts are those of the schemes.
var defaultPorts = map[string]uint16{"https": HTTPS, "http": HTTP, "ssh": SSH}

// On returns the server with the port of a scheme, if it has none.
func (s Server) On(scheme string) Server {
	if s.Port == 0 {
		s.Port = defaultPorts[scheme]
	}
	return s
}

// Without returns the server without its port, if that is one of these.
func (s Server) Without(ports ...uint16) Server {
	if slices.Contains(ports, s.Port) {
		s.Port = 0
	}
	return s
}

// String is the server as it stands in URLs.
func (s Server) String() string {
	text := s.Host
	if strings.Contains(text, ":") {
		text = "[" + text + "]"
	}
	if s.Port != 0 {
		text += ":" + strconv.Itoa(int(s.Port))
	}
	return text
}

// Matches tells whether an entry of a list of servers is about a server. An entry without a port is about the default ports of
// http and https.
func (s Server) Matches(at Server) bool {
	if s.Host != at.Host {
		return false
	}
	return s.Port == at.Port || s.Port == 0 && (at.Port == HTTPS || at.Port == HTTP)
}

// SameOrigin tells whether two URLs have the same scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	first, err := OfURL(a)
	if err != nil || a.Scheme != b.Scheme {
		return false
	}
	second, err := OfURL(b)
	return err == nil && first == second
}

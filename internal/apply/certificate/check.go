// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/x509"
	"slices"
	"strings"
	"time"
)

// More reasons why a certificate is not used.
const (
	whyForeign   = "the previous one was not issued by Satchel"
	whyNotYet    = "the previous one was not valid yet"
	whyEnded     = "the previous one had expired"
	whyOtherArea = "it was issued for another namespace"
	whyNames     = "its DNS names had changed"
	whyUnknownCA = "no trusted authority had signed it"
	whyOutlives  = "it would have outlived its authority"
)

// sound tells that a certificate is an authority as we make them, whether or not we have its key: self-signed, limited to
// servers below named domains, able to sign certificates but no authorities, and with a limited life.
func sound(cert *x509.Certificate) bool {
	return publicKey(cert) != nil &&
		cert.IsCA && cert.MaxPathLenZero && cert.KeyUsage == authorityUsage && onlyServes(cert) &&
		cert.PermittedDNSDomainsCritical && len(cert.PermittedDNSDomains) > 0 && !slices.Contains(cert.PermittedDNSDomains, "") && len(cert.ExcludedIPRanges) == 2 &&
		len(cert.UnhandledCriticalExtensions) == 0 &&
		lives(cert) <= AuthorityLife+backdated &&
		cert.CheckSignatureFrom(cert) == nil
}

func onlyServes(cert *x509.Certificate) bool {
	return slices.Equal(cert.ExtKeyUsage, forServers) && len(cert.UnknownExtKeyUsage) == 0
}

func lives(cert *x509.Certificate) time.Duration { return cert.NotAfter.Sub(cert.NotBefore) }

// usable says why an authority cannot sign certificates for servers below the domains; empty if it can.
//
//	cannot be verified            foreign
//	not valid yet, or expired
//	does not cover every domain   other area
func (i issuer) usable(p pair, domains []string) string {
	switch cert := p.cert; {
	case !sound(cert):
		return whyForeign
	case i.now.Before(cert.NotBefore):
		return whyNotYet
	case !i.now.Before(cert.NotAfter):
		return whyEnded
	case !covers(cert.PermittedDNSDomains, domains):
		return whyOtherArea
	}
	return ""
}

// covers tells whether each of the domains lies in a permitted one.
func covers(permitted, domains []string) bool {
	for _, domain := range domains {
		inside := func(p string) bool { return domain == p || strings.HasSuffix(domain, "."+p) }
		if !slices.ContainsFunc(permitted, inside) {
			return false
		}
	}
	return true
}

// domainsOf are the parent domains of the names: those that an authority for them has to permit.
func domainsOf(wanted []Request) []string {
	var out []string
	for _, r := range wanted {
		for _, name := range r.DNSNames {
			_, parent, _ := strings.Cut(name, ".")
			out = append(out, parent)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// serves says why a certificate does not fit the names; empty if it does.
func (i issuer) serves(p pair, names []string, trusted []*x509.Certificate) string {
	cert := p.cert
	switch {
	case i.now.Before(cert.NotBefore):
		return whyNotYet
	case !i.now.Before(cert.NotAfter):
		return whyEnded
	case cert.IsCA || !onlyServes(cert) || cert.KeyUsage != servingUsage || lives(cert) > ServingLife+backdated:
		return whyForeign
	case !sameNames(cert, names):
		return whyNames
	}
	return i.vouched(cert, names, trusted)
}

func sameNames(cert *x509.Certificate, names []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(cert.DNSNames)), slices.Sorted(slices.Values(names))) &&
		len(cert.IPAddresses)+len(cert.EmailAddresses)+len(cert.URIs) == 0
}

// vouched says why a client of the server that trusts the given authorities would refuse its certificate.
func (i issuer) vouched(cert *x509.Certificate, names []string, trusted []*x509.Certificate) string {
	roots := x509.NewCertPool()
	for _, authority := range trusted {
		roots.AddCert(authority)
	}
	chains, err := cert.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: i.now})
	if err != nil {
		return whyUnknownCA
	}
	for _, name := range names {
		if cert.VerifyHostname(name) != nil {
			return whyNames
		}
	}
	longest := slices.MaxFunc(chains, func(a, b []*x509.Certificate) int { return rootOf(a).NotAfter.Compare(rootOf(b).NotAfter) })
	if cert.NotAfter.After(rootOf(longest).NotAfter) {
		return whyOutlives
	}
	return ""
}

func rootOf(chain []*x509.Certificate) *x509.Certificate { return chain[len(chain)-1] }

// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/x509"
	"slices"
	"strings"
	"time"
)

// More reasons why something is not used.
const (
	whyForeign   = "what was there was none of Satchel's"
	whyNotYet    = "what was there is not valid yet"
	whyEnded     = "what was there had ended"
	whyOtherArea = "it was made for another namespace"
	whyNames     = "the names that it serves had changed"
	whyUnknownCA = "no authority that is trusted had signed it"
	whyOutlives  = "it was to live longer than its authority"
)

// sound tells that a certificate is an authority as we make them, whether or not we have its key: self-signed, limited to
// servers below named domains, able to sign certificates but no authorities, and not made to live for ever.
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

// usable says why an authority cannot sign certificates for servers below the domains; empty: it can.
//
//	cannot be vouched for         foreign
//	its time has not come, or is over
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

// domainsOf are the parents of the names: what an authority for them has to be permitted.
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

// serves says why a certificate is not good for the names; empty: it is.
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

// vouched says why the trusted authorities do not vouch for a certificate, as a client of its server would find.
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

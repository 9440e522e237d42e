// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"fmt"
	"slices"

	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// mostRetired bounds the bundle: each lost key leaves an authority in it until that expires.
const mostRetired = 6

// authorities are the contents of the owner's Secret.
type authorities struct {
	signs, next pair
	trusted     []*x509.Certificate // the authorities to trust, newest first
}

// chooseAuthorities decides which authority signs, and which one is next.
//
//	signs      next      all objects trust next    then
//	usable     none      -                         keep; make a successor when its time has come
//	usable     usable    no, or next is too young  keep both
//	usable     usable    yes                       next signs
//	unusable   usable    -                         next signs: a new one would not be trusted any better
//	unusable   none      -                         make one that signs at once
func (m *maker) chooseAuthorities() error {
	live := contents(m.in.Authority)
	signs, why := m.authority(live[certFile], live[keyFile])
	next, whyNot := m.authority(live[nextCert], live[nextKey])
	if whyNot != "" || (why == "" && !next.cert.NotAfter.After(signs.cert.NotAfter)) {
		next = pair{}
	}
	switch {
	case why != "" && next.none():
		made, err := m.newAuthority(m.domains)
		if err != nil {
			return err
		}
		signs = made
		m.issued(m.authorityID, "Issued a certificate authority, valid until %s: %s", day(signs), why)
	case !next.none() && (why != "" || m.mayReplace(next)):
		signs, next = next, pair{}
		m.issued(m.authorityID, "Let the successor of the certificate authority sign, valid until %s: %s", day(signs), cmp.Or(why, "all objects trust it"))
	}
	m.ca.signs, m.ca.next = signs, next
	return m.provide(live)
}

// authority reads one and says why it is unusable; empty if it is usable.
func (m *maker) authority(cert, key []byte) (pair, string) {
	p, why := readPair(cert, key)
	if why == "" {
		why = m.usable(p, m.domains)
	}
	return p, why
}

func (m *maker) mayReplace(next pair) bool {
	made := next.cert.NotBefore.Add(backdated)
	return m.in.Trusted && !m.now.Before(made.Add(Settling))
}

// provide makes a successor when it is due, and collects the authorities to trust.
func (m *maker) provide(live map[string][]byte) error {
	if m.ca.next.none() && !m.now.Before(m.ca.signs.cert.NotAfter.Add(-Succession)) {
		next, err := m.newAuthority(m.domains)
		if err != nil {
			return err
		}
		m.ca.next = next
		m.issued(m.authorityID, "Issued a successor of the certificate authority, valid until %s: the signing one expires on %s", day(next), day(m.ca.signs))
	}
	m.ca.trusted = m.collect(live)
	return nil
}

// collect lists the authorities to trust: the signing one, the next one, and former ones until they expire. The order does not
// depend on these roles, so that a successor that starts to sign does not change the bundle of the objects that trust it.
func (m *maker) collect(live map[string][]byte) []*x509.Certificate {
	trusted := []*x509.Certificate{m.ca.signs.cert}
	if !m.ca.next.none() {
		trusted = append(trusted, m.ca.next.cert)
	}
	var retired []*x509.Certificate
	for _, file := range []string{trustFile, certFile, nextCert} {
		for _, cert := range readCertificates(live[file]) {
			known := slices.ContainsFunc(append(trusted, retired...), cert.Equal)
			if !known && m.now.Before(cert.NotAfter) && sound(cert) {
				retired = append(retired, cert)
			}
		}
	}
	slices.SortFunc(retired, newestFirst)
	trusted = append(trusted, retired[:min(len(retired), mostRetired)]...)
	slices.SortFunc(trusted, newestFirst)
	return trusted
}

func newestFirst(a, b *x509.Certificate) int {
	return cmp.Or(b.NotAfter.Compare(a.NotAfter), bytes.Compare(a.Raw, b.Raw))
}

// authoritySecret writes the chosen authorities into the Secret.
func (m *maker) authoritySecret() error {
	data := map[string][]byte{}
	if err := write(data, certFile, keyFile, m.ca.signs); err != nil {
		return fmt.Errorf("writing the certificate authority: %w", err)
	}
	if !m.ca.next.none() {
		if err := write(data, nextCert, nextKey, m.ca.next); err != nil {
			return fmt.Errorf("writing the successor of the certificate authority: %w", err)
		}
	}
	data[trustFile] = m.set.Bundle
	m.add(newSecret(m.authorityID, plan.CertificateAuthority, opaque, data), m.in.Authority, m.ca.signs)
	return nil
}

func write(data map[string][]byte, certKey, keyKey string, p pair) error {
	key, err := writeKey(p.key)
	if err != nil {
		return err
	}
	data[certKey], data[keyKey] = writeCertificates(p.cert), key
	return nil
}

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

// mostRetired bounds the bundle: each lost key leaves an authority in it until that ends.
const mostRetired = 6

// authorities are what the owner's Secret is to hold.
type authorities struct {
	signs, next pair
	trusted     []*x509.Certificate // what is to be trusted, newest first
}

// chooseAuthorities decides who signs, and who will.
//
//	signs      next      everything trusts next    then
//	usable     none      -                         keep; make a successor when its time has come
//	usable     usable    no, or next is too young  keep both
//	usable     usable    yes                       next signs
//	of no use  usable    -                         next signs: it can only be trusted better than a new one
//	of no use  none      -                         make one that signs at once
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
	case !next.none() && (why != "" || m.mayTakeOver(next)):
		signs, next = next, pair{}
		m.issued(m.authorityID, "Let the successor of the certificate authority sign, valid until %s: %s", day(signs), cmp.Or(why, "everything trusts it"))
	}
	m.ca.signs, m.ca.next = signs, next
	return m.provide(live)
}

// authority reads one and says why it is of no use; empty: it is.
func (m *maker) authority(cert, key []byte) (pair, string) {
	p, why := readPair(cert, key)
	if why == "" {
		why = m.usable(p, m.domains)
	}
	return p, why
}

func (m *maker) mayTakeOver(next pair) bool {
	made := next.cert.NotBefore.Add(backdated)
	return m.in.Trusted && !m.now.Before(made.Add(Settling))
}

// provide makes a successor when it is time for one, and collects what is to be trusted.
func (m *maker) provide(live map[string][]byte) error {
	if m.ca.next.none() && !m.now.Before(m.ca.signs.cert.NotAfter.Add(-Succession)) {
		next, err := m.newAuthority(m.domains)
		if err != nil {
			return err
		}
		m.ca.next = next
		m.issued(m.authorityID, "Issued a successor of the certificate authority, valid until %s: the one that signs ends on %s", day(next), day(m.ca.signs))
	}
	m.ca.trusted = m.collect(live)
	return nil
}

// collect lists what is to be trusted: who signs, who will, and who did, until they end. The order does not depend on who is
// who, so that a successor that takes over changes nothing for those who trust it.
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

// authoritySecret writes down what was chosen.
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

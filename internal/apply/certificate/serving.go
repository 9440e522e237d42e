// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"github.com/satchel-dev/satchel/internal/apply/plan"
)

// serve adds the serving certificate of a request: the live one while it is good and not due, else a new one.
func (m *maker) serve(r Request) error {
	live := m.in.Serving[r.ID()]
	data := contents(live)
	served, why := readPair(data[certFile], data[keyFile])
	if why == "" {
		why = m.serves(served, r.DNSNames, m.ca.trusted)
	}
	verb := "Issued"
	if why == "" && m.due(served) {
		verb, why = "Renewed", "two thirds of its life were over"
	}
	if why != "" {
		made, err := m.newServing(r.DNSNames, m.ca.signs)
		if err != nil {
			return err
		}
		served = made
		m.issued(r.ID(), "%s the serving certificate of %s, valid until %s: %s", verb, r.DNSNames[0], day(served), why)
	}
	desired := map[string][]byte{trustFile: m.set.Bundle}
	if err := write(desired, certFile, keyFile, served); err != nil {
		return err
	}
	m.add(newSecret(r.ID(), plan.CertificateServing, tls, desired), live, served)
	return nil
}

// due tells that a certificate should be renewed now. One that expires with its authority waits for a successor to sign:
// a renewal before that would not extend it.
func (m *maker) due(served pair) bool {
	end := endOf(m.authorityID, served)
	return !m.now.Before(renewal(end)) && m.servingEnd(m.ca.signs).After(served.cert.NotAfter)
}

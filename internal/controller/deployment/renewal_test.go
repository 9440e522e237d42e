// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/satchel-dev/satchel/internal/apply/certificate"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

const day = 24 * time.Hour

// selfSigned is a deployment of operator that is Ready, and a driver of it.
type selfSigned struct {
	*driver
	namespace, group string
}

func (r *rig) selfSigned(t *testing.T) *selfSigned {
	t.Helper()
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	published := r.publish(t, namespace, "app", "v1", operator(group, "1.0.0"))
	key := r.deploy(t, namespace, "app", rarely)
	r.ready(t, key, published.Revision)
	return &selfSigned{driver: r.drive(t, key, nil), namespace: namespace, group: group}
}

func (s *selfSigned) serving(t *testing.T) *corev1.Secret {
	t.Helper()
	return s.r.secret(t, s.namespace, servingSecret)
}

func (s *selfSigned) authority(t *testing.T) *corev1.Secret {
	t.Helper()
	return s.r.secret(t, s.namespace, authoritySecret)
}

// works fails unless the webhooks could be called at the driver's time.
func (s *selfSigned) works(t *testing.T) {
	t.Helper()
	if why := s.r.verifies(t, s.namespace, s.group, s.now); why != "" {
		t.Fatalf("at %s the webhooks could not be called: %s", s.now.Format(time.DateOnly), why)
	}
}

// written lists what was written of the bundle since a mark.
func (s *selfSigned) written(t *testing.T, since controlplane.AuditMark) []string {
	t.Helper()
	var names []string
	for _, e := range s.r.audit(t, since, func(e controlplane.AuditEvent) bool {
		return e.User == controllerUser && e.ImpersonatedUser != "" && isWrite(e) && (e.Namespace == s.namespace || strings.Contains(e.Name, s.group))
	}) {
		names = append(names, e.Resource+" "+e.Name)
	}
	slices.Sort(names)
	return names
}

func equal(a, b []string) bool { return slices.Equal(a, b) }

// A restart finds everything as it was: nothing is issued, applied or announced.
func TestRestartAppliesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.selfSigned(t)
	mark := r.mark(t)
	_, result := s.ready(t)
	if written := s.written(t, mark); len(written) > 0 {
		t.Errorf("written after a restart: %v", written)
	}
	if s.heard("CertificateIssued") {
		t.Errorf("events after a restart: %v", s.told.notes)
	}
	want := leaf(t, s.serving(t)).NotAfter
	if ends := s.ends(t); len(ends) != 2 || !ends[s.namespace+"/"+servingSecret].Equal(want) {
		t.Errorf("the metric shows %v, want two ends, that of the serving certificate %s", ends, want)
	}
	if result.RequeueAfter < 300*day {
		t.Errorf("comes back after %s, want the interval of a year, less a tenth", result.RequeueAfter)
	}
}

// The certificate is renewed when two thirds of its lifetime are over, whatever the
// interval; the CA, the objects that trust it, and the Pods do not change.
func TestRenewalOfTheServingCertificate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.selfSigned(t)
	s.ready(t)
	first, authority, bundles := s.serving(t), s.authority(t), r.bundles(t, s.group)
	web := r.must(t, object("apps/v1", "Deployment", s.namespace, "gadgets"))
	lived := leaf(t, first)
	due := lived.NotBefore.Add(lived.NotAfter.Sub(lived.NotBefore) * 2 / 3)

	s.now = due.Add(-time.Hour)
	_, result := s.ready(t)
	if !bytes.Equal(s.serving(t).Data["tls.crt"], first.Data["tls.crt"]) {
		t.Fatal("renewed before it was due")
	}
	if result.RequeueAfter > time.Hour+time.Minute || result.RequeueAfter < 50*time.Minute {
		t.Errorf("an hour before it is due, the deployment comes back after %s", result.RequeueAfter)
	}
	s.now = due.Add(time.Minute)
	mark := r.mark(t)
	found, _ := s.ready(t)
	s.works(t)
	second := leaf(t, s.serving(t))
	if !second.NotAfter.After(lived.NotAfter.Add(certificate.ServingLife/2)) || !found.Status.CertificateExpirationTime.Time.Equal(second.NotAfter) {
		t.Errorf("valid until %s, status says %s; before it was %s", second.NotAfter, found.Status.CertificateExpirationTime, lived.NotAfter)
	}
	if written := s.written(t, mark); !equal(written, []string{"secrets " + servingSecret}) {
		t.Errorf("written: %v, want the serving Secret only", written)
	}
	for kind, bundle := range r.bundles(t, s.group) {
		if !bytes.Equal(bundle, bundles[kind]) {
			t.Errorf("the bundle of the %s changed", kind)
		}
	}
	again := r.must(t, object("apps/v1", "Deployment", s.namespace, "gadgets"))
	if !bytes.Equal(s.authority(t).Data["tls.key"], authority.Data["tls.key"]) || again.GetGeneration() != web.GetGeneration() {
		t.Error("another authority, or another generation of the Deployment")
	}
	if !s.heard("Normal CertificateIssued: Renewed the serving certificate") {
		t.Errorf("no event tells: %v", s.told.notes)
	}
	if !s.ends(t)[s.namespace+"/"+servingSecret].Equal(second.NotAfter) {
		t.Errorf("the metric shows %v", s.ends(t))
	}
}

// Three years before a CA expires a new one is made, which is trusted first and signs a
// day later, when every object trusts it.
func TestRotationOfTheAuthority(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.selfSigned(t)
	for range 5 { // years of renewals
		s.now = s.now.Add(16*30*day + 10*day)
		s.ready(t)
		s.works(t)
	}
	first := s.authority(t)
	if len(first.Data["next.crt"]) > 0 {
		t.Fatal("a successor after less than seven years")
	}
	s.now = leaf(t, first).NotAfter.Add(day - certificate.Succession)
	_, result := s.ready(t)
	s.works(t)
	both, next := s.authority(t), s.authority(t).Data["next.crt"]
	if len(next) == 0 || !bytes.Equal(both.Data["tls.crt"], first.Data["tls.crt"]) {
		t.Fatal("no successor, or it signs already")
	}
	for kind, bundle := range r.bundles(t, s.group) {
		if !bytes.Contains(bundle, next) || !bytes.Contains(bundle, first.Data["tls.crt"]) {
			t.Errorf("the %s does not trust both authorities", kind)
		}
	}
	if result.RequeueAfter > time.Hour {
		t.Errorf("while the successor waits, the deployment comes back after %s", result.RequeueAfter)
	}
	old := s.serving(t)
	s.now = s.now.Add(2 * time.Hour)
	s.ready(t)
	if !bytes.Equal(s.authority(t).Data["tls.crt"], first.Data["tls.crt"]) {
		t.Error("the successor signs before caches can know it")
	}
	s.now = s.now.Add(2 * day)
	s.ready(t)
	s.works(t)
	if signs := s.authority(t).Data["tls.crt"]; !bytes.Equal(signs, next) {
		t.Error("the successor does not sign, although everything trusts it")
	}
	for kind, bundle := range r.bundles(t, s.group) {
		if !bytes.Contains(bundle, first.Data["tls.crt"]) {
			t.Errorf("the %s does not trust the old authority any more, which Pods may still be served by", kind)
		}
	}
	s.now = leaf(t, old).NotBefore.Add(17 * 30 * day)
	s.ready(t)
	s.works(t)
	s.now = leaf(t, first).NotAfter.Add(day)
	s.ready(t)
	s.works(t)
	for kind, bundle := range r.bundles(t, s.group) {
		if bytes.Contains(bundle, first.Data["tls.crt"]) {
			t.Errorf("the %s still trusts an authority that ended", kind)
		}
	}
}

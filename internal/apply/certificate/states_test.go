// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

const day1 = 24 * time.Hour

// state is a state of a cluster, and the decision of Make in it. Words are parts of the sentences, in order.
type state struct {
	reason  string
	bring   func(t *testing.T, c *cluster) // from a cluster that was just set up
	trusted bool
	want    []string
	waiting bool
	bundle  int // authorities in it
}

// wait lets time pass without a reconcile.
func wait(d time.Duration) func(*testing.T, *cluster) {
	return func(_ *testing.T, c *cluster) { c.now = c.now.Add(d) }
}

// succeed brings a cluster to the day after its successor was made.
func succeed(t *testing.T, c *cluster) {
	c.now = start.Add(AuthorityLife - Succession)
	c.settle(t)
	c.now = c.now.Add(Settling)
}

// lookAt reconciles a cluster at intervals, while nothing is ever trusted.
func lookAt(every, until time.Duration) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		for c.now.Before(start.Add(until)) {
			c.now = c.now.Add(every)
			c.settle(t)
		}
	}
}

var states = map[string]state{
	"fresh":                 {reason: "nothing is due", bring: wait(0), bundle: 1},
	"before two thirds":     {reason: "nothing is due yet", bring: wait(ServingLife/3*2 - day1), bundle: 1},
	"two thirds":            {reason: "renewed in good time", bring: wait(ServingLife / 3 * 2), want: []string{"Renewed the serving certificate of hook.shop, valid until 2030-03-22: two thirds"}, bundle: 1},
	"serving ended":         {reason: "no reconcile for a long time", bring: wait(ServingLife + day1), want: []string{"Issued the serving certificate of hook.shop, valid until 2030-11-21: the previous one had expired"}, bundle: 1},
	"clock set back":        {reason: "what is not valid yet is of no use", bring: wait(-2 * day1), want: []string{"Issued a certificate authority", "Issued the serving certificate of hook.shop, valid until 2028-11-18: the previous one was not valid yet"}, bundle: 2},
	"clock a little back":   {reason: "clocks differ", bring: wait(-backdated / 2), bundle: 1},
	"before succession":     {reason: "only the serving certificate, which was not renewed", bring: wait(AuthorityLife - Succession - day1), want: []string{"Issued the serving"}, bundle: 1},
	"succession":            {reason: "a successor is trusted first", bring: wait(AuthorityLife - Succession), want: []string{"Issued a successor of the certificate authority, valid until 2043-11-17: the signing one expires on 2036-11-18", "Issued the serving"}, waiting: true, bundle: 2},
	"waiting for trust":     {reason: "one object trusts only the old one", bring: func(t *testing.T, c *cluster) { succeed(t, c); c.now = c.now.Add(year / 2) }, waiting: true, bundle: 2},
	"too early to trust":    {reason: "a cache may lag", bring: func(t *testing.T, c *cluster) { succeed(t, c); c.now = c.now.Add(-time.Hour) }, trusted: true, waiting: true, bundle: 2},
	"everything trusts":     {reason: "it signs; what the old one signed stays", bring: succeed, trusted: true, want: []string{"satchel-ca-web: Let the successor of the certificate authority sign, valid until 2043-11-17: all objects trust it"}, bundle: 2},
	"never trusted":         {reason: "serving certificates end with their authority, and are not renewed for nothing", bring: lookAt(20*day1, AuthorityLife-30*day1), waiting: true, bundle: 2},
	"authority ended":       {reason: "the successor is no worse, trusted or not", bring: lookAt(20*day1, AuthorityLife), want: nil, bundle: 1},
	"authority just ended":  {reason: "it signs at the first look", bring: func(t *testing.T, c *cluster) { succeed(t, c); c.now = start.Add(AuthorityLife) }, want: []string{"Let the successor of the certificate authority sign, valid until 2043-11-17: the previous one had expired", "Issued the serving certificate of hook.shop"}, bundle: 1},
	"trusted, no successor": {reason: "trust alone changes nothing", bring: wait(year), trusted: true, bundle: 1},
	"all ended":             {reason: "no reconcile for twenty years", bring: wait(2 * AuthorityLife), want: []string{"Issued a certificate authority, valid until 2056-11-13: the previous one had expired", "Issued the serving"}, bundle: 1},

	"authority lost":   {reason: "its deletion revokes all earlier trust", bring: func(_ *testing.T, c *cluster) { c.authority = nil }, want: []string{"none existed", "hook-cert: Issued the serving certificate of hook.shop, valid until 2028-11-20: no trusted authority had signed it"}, bundle: 1},
	"serving lost":     {reason: "it is issued again", bring: func(_ *testing.T, c *cluster) { delete(c.serving, hook.ID()) }, want: []string{"hook-cert: Issued the serving certificate of hook.shop, valid until 2028-11-20: none existed"}, bundle: 1},
	"key lost":         {reason: "without its key an authority is still trusted, so that what is served stays good", bring: func(_ *testing.T, c *cluster) { c.editAuthority(keyFile, nil) }, want: []string{"Issued a certificate authority, valid until 2036-11-18: the previous one could not be read"}, bundle: 2},
	"certificate lost": {reason: "the bundle still has it", bring: func(_ *testing.T, c *cluster) { c.editAuthority(certFile, []byte("garbage")) }, want: []string{"could not be read"}, bundle: 2},
	"bundle lost":      {reason: "it is made of what there is", bring: func(_ *testing.T, c *cluster) { c.editAuthority(trustFile, nil) }, bundle: 1},
	"bundle garbled": {reason: "what is no certificate is dropped", bring: func(_ *testing.T, c *cluster) {
		c.editAuthority(trustFile, []byte("-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n"))
	}, bundle: 1},
	"bundle and key lost": {reason: "what signed the certificates that are served is trusted still", bring: func(_ *testing.T, c *cluster) {
		c.editAuthority(trustFile, nil)
		c.editAuthority(keyFile, nil)
	}, want: []string{"Issued a certificate authority"}, bundle: 2},
	"bundle too long": {reason: "garbage is not read without a limit", bring: func(_ *testing.T, c *cluster) {
		c.editAuthority(trustFile, append(bytes.Repeat([]byte("\n"), longestPEM), contents(c.authority)[trustFile]...))
		c.editAuthority(certFile, nil)
	}, want: []string{"Issued a certificate authority", "no trusted authority"}, bundle: 1},
	"many retired": {reason: "the bundle does not grow for ever", bring: func(t *testing.T, c *cluster) {
		for range 2 * mostRetired {
			c.editAuthority(keyFile, nil)
			c.now = c.now.Add(time.Hour)
			c.settle(t)
		}
	}, bundle: 1 + mostRetired},
	"no data at all": {reason: "an emptied Secret is none", bring: func(_ *testing.T, c *cluster) { c.authority.Object["data"] = "x" }, want: []string{"none existed", "no trusted authority"}, bundle: 1},
	"more keys": {reason: "what is not ours is not kept", bring: func(_ *testing.T, c *cluster) {
		c.editAuthority("extra", []byte("x"))
		c.editServing(hook, "extra", []byte("x"))
	}, bundle: 1},
	"successor garbled": {reason: "another one is made; the first stays trusted", bring: func(t *testing.T, c *cluster) { succeed(t, c); c.editAuthority(nextKey, []byte("x")) }, trusted: true, want: []string{"Issued a successor"}, waiting: true, bundle: 3},
	"both garbled": {reason: "a new one signs at once", bring: func(t *testing.T, c *cluster) {
		succeed(t, c)
		c.editAuthority(nextKey, nil)
		c.editAuthority(keyFile, nil)
	}, want: []string{"Issued a certificate authority"}, bundle: 3},
	"key lost, successor": {reason: "a successor is likely to be trusted already", bring: func(t *testing.T, c *cluster) { succeed(t, c); c.editAuthority(keyFile, []byte("x")) }, want: []string{"Let the successor of the certificate authority sign, valid until 2043-11-17: the previous one could not be read"}, bundle: 2},
	"older successor": {reason: "a successor that ends earlier is none", bring: func(_ *testing.T, c *cluster) {
		data := contents(c.authority)
		c.editAuthority(nextCert, data[certFile])
		c.editAuthority(nextKey, data[keyFile])
	}, trusted: true, bundle: 1},

	"serving key of another": {reason: "it would not be served", bring: func(t *testing.T, c *cluster) { c.editServing(hook, keyFile, encodeKey(t, newKey(t))) }, want: []string{"its key belonged to another certificate"}, bundle: 1},
	"serving garbled":        {reason: "it would not be served", bring: func(_ *testing.T, c *cluster) { c.editServing(hook, certFile, []byte("x")) }, want: []string{"could not be read"}, bundle: 1},
	"serving chain": {reason: "ours is one certificate", bring: func(_ *testing.T, c *cluster) {
		data := contents(c.serving[hook.ID()])
		c.editServing(hook, certFile, append(data[certFile], data[certFile]...))
	}, want: []string{"could not be read"}, bundle: 1},
	"serving bundle lost":     {reason: "it is repaired, without a new certificate", bring: func(_ *testing.T, c *cluster) { c.editServing(hook, trustFile, nil) }, bundle: 1},
	"serving of another type": {reason: "it is written again, whatever comes of that", bring: func(_ *testing.T, c *cluster) { c.serving[hook.ID()].Object["type"] = "Opaque" }, bundle: 1},
	"other names":             {reason: "a Service was renamed", bring: func(_ *testing.T, c *cluster) { c.wanted[0].DNSNames = request("shop", "hooks").DNSNames }, want: []string{"Issued the serving certificate of hooks.shop, valid until 2028-11-20: its DNS names had changed"}, bundle: 1},
	"other order of names":    {reason: "names are a set", bring: func(_ *testing.T, c *cluster) { n := hook.DNSNames; c.wanted[0].DNSNames = []string{n[2], n[0], n[1]} }, bundle: 1},
	"other namespace":         {reason: "the authority is confined to the old one", bring: func(_ *testing.T, c *cluster) { c.wanted = []Request{request("mall", "hook")} }, want: []string{"Issued a certificate authority, valid until 2036-11-18: it was issued for another namespace", "Issued the serving certificate of hook.mall"}, bundle: 2},
	"another request":         {reason: "the others stay", bring: func(_ *testing.T, c *cluster) { c.wanted = append(c.wanted, audit) }, want: []string{"audit-cert: Issued the serving certificate of audit.shop"}, bundle: 1},
}

// TestStates is the table of states and decisions. After each decision, the next one finds nothing to do.
func TestStates(t *testing.T) {
	for name, s := range states {
		t.Run(name, func(t *testing.T) {
			c := newCluster(hook)
			c.settle(t)
			s.bring(t, c)
			s.check(t, c)
		})
	}
}

func (s state) check(t *testing.T, c *cluster) {
	t.Helper()
	set := c.make(t, s.trusted)
	got := sentences(set)
	if len(got) != len(s.want) {
		t.Fatalf("%s: want %d changes, got %s", s.reason, len(s.want), strings.Join(got, "\n"))
	}
	for i, part := range s.want {
		if !strings.Contains(got[i], part) {
			t.Errorf("%s: change %d is %q and should say %q", s.reason, i, got[i], part)
		}
	}
	if authorities := len(readCertificates(set.Bundle)); set.Waiting != s.waiting || authorities != s.bundle {
		t.Errorf("%s: waiting %t, %d authorities are trusted", s.reason, set.Waiting, authorities)
	}
	for _, r := range c.wanted {
		for _, host := range r.DNSNames {
			if err := verify(servedBy(t, set, r), set.Bundle, host, c.now); err != nil {
				t.Errorf("%s: %s: %v", s.reason, host, err)
			}
		}
	}
	if diff := cmp.Diff(c.different(set), set.Stale); diff != "" {
		t.Errorf("%s: stale (-want +got):\n%s", s.reason, diff)
	}
	if !set.Next.After(c.now) {
		t.Errorf("%s: next at %s, and it is %s", s.reason, set.Next, c.now)
	}
	c.write(set)
	again := c.make(t, false)
	if len(again.Issued) > 0 || len(again.Stale) > 0 || !sameSecrets(set.Secrets, again.Secrets) {
		t.Errorf("%s: a second look finds %v, stale %v", s.reason, sentences(again), again.Stale)
	}
}

// Clients that trust both notice nothing when the successor takes over, and only its own Secret is written.
func TestAuthorityReplacementKeepsTrust(t *testing.T) {
	c := newCluster(hook)
	c.settle(t)
	succeed(t, c)
	before, set := c.make(t, false), c.make(t, true)
	if len(set.Issued) != 1 || !bytes.Equal(before.Bundle, set.Bundle) {
		t.Errorf("%v, and another bundle: %t", sentences(set), !bytes.Equal(before.Bundle, set.Bundle))
	}
	if diff := cmp.Diff([]inventory.ID{AuthorityID(owner)}, set.Stale); diff != "" {
		t.Errorf("stale (-want +got):\n%s", diff)
	}
}

// As long as its authority has no trusted successor, a serving certificate that expires with the
// authority is not renewed in vain.
func TestLastYearsOfAnAuthority(t *testing.T) {
	c := newCluster(hook)
	c.settle(t)
	succeed(t, c)
	changes := 0
	for end := start.Add(AuthorityLife); c.now.Before(end); c.now = c.now.Add(5 * day1) {
		set := c.make(t, false)
		changes += len(set.Issued)
		c.write(set)
	}
	if ends := certOf(t, c.serving[hook.ID()], certFile).NotAfter; changes != 1 || !ends.Equal(start.Add(AuthorityLife)) {
		t.Errorf("%d renewals, the last until %s", changes, ends)
	}
}

// Requests that cannot be met are refused together, with the reasons.
func TestImpossibleRequests(t *testing.T) {
	c := newCluster(hook, hook, Request{Namespace: "shop", Secret: "x"}, Request{Namespace: "shop", Secret: "y", DNSNames: []string{"localhost"}},
		Request{Namespace: owner.Namespace, Secret: "satchel-ca-web", DNSNames: hook.DNSNames})
	_, err := Make(c.input(false))
	want := `two certificates are wanted in Secret shop/hook-cert
the certificate of Secret shop/x has no names
the certificate of Secret shop/y has a name outside of any namespace: "localhost"
Secret team/satchel-ca-web is wanted for serving and is that of the certificate authority`
	if err == nil {
		t.Fatal("not refused")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

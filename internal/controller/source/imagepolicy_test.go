// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/upstream"
)

// front is a server before a registry, which logs what it is asked.
type front struct {
	host string

	mutex  sync.Mutex
	asked  []string
	logins []string // Authorization headers
	away   bool
	login  string // user:password that it demands; "" for none
}

func newFront(t *testing.T, registry *upstream.Registry) *front {
	t.Helper()
	f := &front{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		f.mutex.Lock()
		f.asked = append(f.asked, request.Method+" "+request.URL.Path)
		if header := request.Header.Get("Authorization"); header != "" {
			f.logins = append(f.logins, header)
		}
		away, login := f.away, f.login
		f.mutex.Unlock()
		user, password, _ := request.BasicAuth()
		switch {
		case away:
			w.WriteHeader(http.StatusServiceUnavailable)
		case login != "" && user+":"+password != login:
			w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			registry.ServeHTTP(w, request)
		}
	}))
	t.Cleanup(server.Close)
	f.host = strings.TrimPrefix(server.URL, "http://")
	return f
}

func (f *front) set(change func()) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	change()
}

func (f *front) seen() (asked, logins []string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Clone(f.asked), slices.Clone(f.logins)
}

// sharedNamespace creates the shared namespace.
func (r *rig) sharedNamespace(t *testing.T) string {
	t.Helper()
	err := r.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: sharedCatalogs}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	return sharedCatalogs
}

// policy writes a BundleImagePolicy, which goes with the test.
func (r *rig) policy(t *testing.T, namespace, name string, rules ...v1alpha1.ImageRule) *v1alpha1.BundleImagePolicy {
	t.Helper()
	p := &v1alpha1.BundleImagePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.BundleImagePolicySpec{Images: rules}}
	if err := r.admin.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.admin.Delete(t.Context(), p) })
	// A source that is reconciled before the controller sees the policy is fetched without it.
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		return r.cached.Get(ctx, client.ObjectKeyFromObject(p), &v1alpha1.BundleImagePolicy{}) == nil, nil
	})
	if err != nil {
		t.Fatalf("the controller does not see the policy %s/%s: %v", namespace, name, err)
	}
	return p
}

// mirrored is an image at an origin and at its mirror, each behind a front.
type mirrored struct {
	origin, mirror *front
	copies         *upstream.Registry
	digest         string
}

func (r *rig) mirrored(t *testing.T, repository string) mirrored {
	t.Helper()
	m := mirrored{copies: upstream.NewRegistry(t.Context())}
	t.Cleanup(m.copies.Close)
	m.origin, m.mirror = newFront(t, r.registry), newFront(t, m.copies)
	var err error
	if m.digest, err = r.registry.Push(t.Context(), repository+":v1", files("a.yaml", "one")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.copies.Push(t.Context(), "copy/"+repository+":v1", files("a.yaml", "one")); err != nil {
		t.Fatal(err)
	}
	return m
}

// rule is the rule for the origin, with its mirror.
func (m mirrored) rule() v1alpha1.ImageRule {
	return v1alpha1.ImageRule{Prefix: m.origin.host, Mirrors: []string{m.mirror.host + "/copy"}, Insecure: true}
}

// C58: with Never the source is not contacted, whether the mirror answers or not.
func TestC58Never(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	m := r.mirrored(t, "c58/app")
	rule := m.rule()
	rule.Source = v1alpha1.ImageSourceNever
	r.policy(t, namespace, "site", rule)
	pinned := image(m.origin.host + "/c58/app@" + m.digest)
	s := r.ready(t, r.create(t, namespace, "mirrored", pinned, nil))
	if got, want := s.Status.Resolved[0].Via, m.mirror.host+"/copy/c58/app"; got != want {
		t.Errorf("it came via %q, want %q", got, want)
	}
	m.mirror.set(func() { m.mirror.away = true })
	failed := r.unready(t, r.create(t, namespace, "away", pinned, nil), v1alpha1.ReasonUnreachable)
	if message := conditions.GetMessage(failed, meta.ReadyCondition); !strings.Contains(message, m.mirror.host+"/copy/c58/app") {
		t.Errorf("the message does not name the mirror: %q", message)
	}
	r.unready(t, r.create(t, namespace, "tag", image(m.origin.host+"/c58/app:v1"), nil), v1alpha1.ReasonRefused)
	if asked, _ := m.origin.seen(); len(asked) > 0 {
		t.Errorf("the source was asked %q", asked)
	}
}

// C59: without Never the source answers for tags, and for what no mirror has; tags at the mirror only if that is said.
func TestC59FallbackAndTags(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	m := r.mirrored(t, "c59/app")
	policy := r.policy(t, namespace, "site", m.rule())
	key := r.create(t, namespace, "app", image(m.origin.host+"/c59/app:v1"), nil)
	s := r.ready(t, key)
	if s.Status.Resolved[0].Via == "" || s.Status.Resolved[0].Digest != m.digest {
		t.Errorf("resolved %+v", s.Status.Resolved)
	}
	if asked, _ := m.mirror.seen(); slices.ContainsFunc(asked, func(a string) bool { return strings.HasSuffix(a, "/v1") }) {
		t.Errorf("the mirror was asked for a tag: %q", asked)
	}
	newer, err := m.copies.Push(t.Context(), "copy/c59/app:v1", files("a.yaml", "two"))
	if err != nil {
		t.Fatal(err)
	}
	// A change of the policy wakes the source, long before its interval.
	policy.Spec.Images[0].Tags = true
	if err := r.admin.Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	s = r.until(t, key, "the mirror's tag is taken", func(s *v1alpha1.BundleSource) bool { return s.Status.Resolved[0].Digest == newer })
	if s.Status.Resolved[0].Transport == "" {
		t.Error("a mirror that decides what a tag is does not show in transport")
	}
	m.mirror.set(func() { m.mirror.away = true })
	fallen := r.ready(t, r.create(t, namespace, "fallen", image(m.origin.host+"/c59/app@"+m.digest), nil))
	if via := fallen.Status.Resolved[0].Via; via != "" {
		t.Errorf("it came via %q, which is away", via)
	}
}

// C57: a shared denial holds whatever a tenant's policy says, withdraws what was published, and ends with the policy.
func TestC57Denied(t *testing.T) {
	r := newRig(t)
	platform, namespace := r.sharedNamespace(t), controlplane.NewNamespace(t, r.cp)
	m := r.mirrored(t, "c57/app")
	key := r.create(t, namespace, "app", image(m.origin.host+"/c57/app@"+m.digest), nil)
	r.ready(t, key)
	catalog := r.createCatalog(t, namespace, "catalog", image(m.origin.host + "/c57/app@" + m.digest)[0], nil)
	shared := r.policy(t, platform, namespace, v1alpha1.ImageRule{Prefix: m.origin.host + "/c57", Deny: true})
	r.policy(t, namespace, "weaker", v1alpha1.ImageRule{Prefix: m.origin.host + "/c57/app", Mirrors: []string{m.mirror.host + "/copy/c57/app"}, Insecure: true})
	denied := r.unready(t, key, v1alpha1.ReasonImageDenied)
	if denied.Status.Artifact != nil || !conditions.IsTrue(denied, meta.StalledCondition) || !conditions.IsFalse(denied, v1alpha1.SourceVerifiedCondition) {
		t.Errorf("denied:\n%s", describe(denied))
	}
	r.unreadyCatalog(t, catalog, v1alpha1.ReasonImageDenied)
	if asked, _ := m.mirror.seen(); len(asked) > 0 {
		t.Errorf("the mirror of the tenant was asked %q", asked)
	}
	r.ready(t, r.create(t, namespace, "sibling", image(r.registry.Host()+"/c57/app@"+m.digest), nil)) // another registry
	if err := r.admin.Delete(t.Context(), shared); err != nil {
		t.Fatal(err)
	}
	r.ready(t, key)
}

// C60, M34: what the shared policy demands is demanded beside what the source does, and taking away its trust withdraws the artifact.
func TestC60PolicyAndSourceVerify(t *testing.T) {
	r := newRig(t)
	platform, namespace := r.sharedNamespace(t), controlplane.NewNamespace(t, r.cp)
	m := r.mirrored(t, "c60/app")
	site, team := newSigner(t), newSigner(t)
	keys := "keys-" + namespace
	r.secret(t, platform, keys, map[string]string{"site.pub": site.public(t)})
	r.secret(t, namespace, "keys", map[string]string{"team.pub": team.public(t)})
	by := func(name string) *v1alpha1.ImageVerification {
		return &v1alpha1.ImageVerification{Provider: "cosign", SecretRef: &v1alpha1.LocalReference{Name: name}}
	}
	open := r.create(t, namespace, "open", image(m.origin.host+"/c60/app@"+m.digest), nil)
	r.ready(t, open)
	r.policy(t, namespace, "weaker", v1alpha1.ImageRule{Prefix: m.origin.host + "/c60/app"})
	r.policy(t, platform, namespace, v1alpha1.ImageRule{Prefix: m.origin.host, Verify: by(keys)})
	r.withdrawn(t, open)

	source := image(m.origin.host + "/c60/app@" + m.digest)
	source[0].Image.Verify = by("keys")
	both := r.create(t, namespace, "both", source, every(time.Second))
	r.unready(t, both, v1alpha1.ReasonVerificationFailed)
	r.signImage(t, team, "c60/app", m.digest)
	if s := r.refresh(t, both); conditions.IsTrue(s, meta.ReadyCondition) {
		t.Fatalf("the signature that the policy demands is missing:\n%s", describe(s))
	}
	r.signImageToo(t, site, "c60/app", m.digest)
	s := r.ready(t, both)
	if signer := s.Status.Resolved[0].VerifiedBy; !strings.Contains(signer, "team.pub") || !strings.Contains(signer, "site.pub") {
		t.Errorf("verified by %q", signer)
	}
	r.ready(t, open)

	// The trust of the policy is taken away: another key, then none.
	m.origin.set(func() { m.origin.away = true })
	r.secret(t, platform, keys, map[string]string{"next.pub": newSigner(t).public(t)})
	for _, key := range []client.ObjectKey{both, open} {
		r.until(t, key, "not accepted again", func(s *v1alpha1.BundleSource) bool {
			return conditions.IsUnknown(s, v1alpha1.SourceVerifiedCondition) && conditions.GetReason(s, v1alpha1.SourceVerifiedCondition) == v1alpha1.ReasonTrustChanged &&
				s.Status.Artifact != nil
		})
	}
	m.origin.set(func() { m.origin.away = false })
	r.withdrawn(t, both)
	r.withdrawn(t, open)
}

// C61, C53: a shared login is used for the tenants that are named, and sent to its own prefix and mirrors only.
func TestC61SharedLogin(t *testing.T) {
	r := newRig(t)
	platform := r.sharedNamespace(t)
	named, other := controlplane.NewNamespace(t, r.cp), controlplane.NewNamespace(t, r.cp)
	m := r.mirrored(t, "c61/app")
	m.origin.set(func() { m.origin.login = "site:CANARY-pull" })
	evil := newFront(t, m.copies)
	evil.set(func() { evil.login = "unknown:wrong" })
	// The Secret has a login for the host of the attacker as well, as one with a wildcard would.
	secret := "pull-" + named
	r.secret(t, platform, secret, map[string]string{corev1.DockerConfigJsonKey: `{"auths":{` +
		`"` + m.origin.host + `":{"username":"site","password":"CANARY-pull"},"` + evil.host + `":{"username":"site","password":"CANARY-other"}}}`})
	r.policy(t, platform, named, v1alpha1.ImageRule{
		Prefix: m.origin.host + "/c61", SecretRef: &v1alpha1.LocalReference{Name: secret}, Tenants: []string{named},
	})
	private := image(m.origin.host + "/c61/app@" + m.digest)
	r.ready(t, r.create(t, named, "app", private, nil))
	r.unready(t, r.create(t, other, "app", private, nil), v1alpha1.ReasonUnauthorized)
	// A tenant who names the Secret finds it in its own namespace only.
	r.policy(t, other, "steals", v1alpha1.ImageRule{Prefix: m.origin.host + "/c61", SecretRef: &v1alpha1.LocalReference{Name: secret}})
	r.unready(t, r.create(t, other, "named", private, nil), v1alpha1.ReasonNotFound)
	// The tenant that may use the login sends it to no mirror of its own.
	r.policy(t, named, "steals", v1alpha1.ImageRule{Prefix: m.origin.host + "/c61", Mirrors: []string{evil.host + "/copy/c61"}, Insecure: true})
	r.ready(t, r.create(t, named, "again", private, nil))
	asked, logins := evil.seen()
	if len(asked) == 0 || len(logins) > 0 {
		t.Errorf("the mirror of the attacker was asked %q with %d logins", asked, len(logins))
	}
}

// C55: the guards hold for mirrors.
func TestC55MirrorsAreGuarded(t *testing.T) {
	r := newRig(t)
	namespace := controlplane.NewNamespace(t, r.cp)
	m := r.mirrored(t, "c55/app")
	_, port, _ := strings.Cut(m.mirror.host, ":")
	for name, tc := range map[string]struct {
		mirror   string
		insecure bool
		says     string
	}{
		"metadata":  {"169.254.169.254/copy", true, "169.254.169.254"},
		"localhost": {"localhost:" + port + "/copy", true, "insecure-hosts"},
		"tls":       {m.mirror.host + "/copy", false, "HTTP without TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			origin := newFront(t, r.registry)
			r.policy(t, namespace, name, v1alpha1.ImageRule{Prefix: origin.host, Mirrors: []string{tc.mirror}, Insecure: tc.insecure, Source: v1alpha1.ImageSourceNever})
			key := r.create(t, namespace, name, image(origin.host+"/c55/app@"+m.digest), nil)
			failed := r.until(t, key, "refused", func(s *v1alpha1.BundleSource) bool { return conditions.IsFalse(s, meta.ReadyCondition) })
			if message := conditions.GetMessage(failed, meta.ReadyCondition); !strings.Contains(message, tc.says) {
				t.Errorf("the message is %q", message)
			}
		})
	}
}

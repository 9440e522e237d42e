// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/controller/deployment"
	"github.com/satchel-dev/satchel/internal/controller/egress"
	"github.com/satchel-dev/satchel/internal/fetch/guard"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// abroad is a deployment to another cluster, which is the same one under another name:
// a kubeconfig with the token of a ServiceAccount of the namespace there.
type abroad struct {
	*rig
	namespace, there string
}

// newAbroad has a local ServiceAccount that may only read the Secret prod, and a remote
// one, agent, with all permissions in its namespace, the permission to identify the
// cluster, and to impersonate the ServiceAccount deployer, which has the same
// permissions.
func (r *rig) newAbroad(t *testing.T) *abroad {
	t.Helper()
	a := &abroad{rig: r, namespace: controlplane.NewNamespace(t, r.cp), there: controlplane.NewNamespace(t, r.cp)}
	a.grant(t, a.namespace, "installer", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"prod"}, Verbs: []string{"get"}})
	knows := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: a.there + "-knows"}, Rules: []rbacv1.PolicyRule{knows}}
	r.create(t, role)
	for name, namespace := range map[string]string{"agent": a.there, "deployer": a.namespace} {
		if err := installation.Account(t.Context(), r.admin, namespace, name, "cluster-admin", a.there); err != nil {
			t.Fatal(err)
		}
		r.create(t, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name + "-" + name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}},
		})
	}
	return a
}

// grant creates a ServiceAccount, if missing, with permissions in the namespace.
func (a *abroad) grant(t *testing.T, namespace, account string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	_ = a.admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}})
	a.create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}, Rules: rules})
	a.bind(t, namespace, account, rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: account})
}

func (a *abroad) bind(t *testing.T, namespace, role string, subject rbacv1.Subject) {
	t.Helper()
	a.create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
	})
}

// mayImpersonate lets the agent impersonate deployer.
func (a *abroad) mayImpersonate(t *testing.T) {
	t.Helper()
	a.create(t, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "impersonate"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{"deployer"}, Verbs: []string{"impersonate"}}},
	})
	a.bind(t, a.namespace, "impersonate", rbacv1.Subject{Kind: "ServiceAccount", Namespace: a.there, Name: "agent"})
}

// kubeconfig is a kubeconfig with the token of a ServiceAccount; change may adjust
// cluster and user.
func (a *abroad) kubeconfig(t *testing.T, account string, change func(cluster, user map[string]any)) string {
	t.Helper()
	config, err := installation.AccountConfig(t.Context(), a.cp.RESTConfig(), a.there, account)
	if err != nil {
		t.Fatal(err)
	}
	authority := config.CAData
	if len(authority) == 0 {
		if authority, err = os.ReadFile(config.CAFile); err != nil {
			t.Fatal(err)
		}
	}
	cluster := map[string]any{"server": config.Host, "certificate-authority-data": authority}
	user := map[string]any{"token": config.BearerToken}
	if change != nil {
		change(cluster, user)
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "prod",
		"contexts": []any{map[string]any{"name": "prod", "context": map[string]any{"cluster": "prod", "user": "prod"}}},
		"clusters": []any{map[string]any{"name": "prod", "cluster": cluster}},
		"users":    []any{map[string]any{"name": "prod", "user": user}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// store puts a kubeconfig into the Secret prod.
func (a *abroad) store(t *testing.T, data map[string]string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "prod"}, StringData: data}
	if err := a.admin.Create(t.Context(), secret); err == nil {
		return
	}
	secret.Data, secret.StringData = map[string][]byte{}, nil
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	if err := a.admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// goes sends a deployment there.
func (a *abroad) goes(d *v1alpha1.BundleDeployment) {
	quick(d)
	d.Spec.Target.Namespace = a.there
	d.Spec.Target.ClusterReference = v1alpha1.ClusterReference{KubeConfig: v1alpha1.KubeConfigReference{SecretRef: v1alpha1.KubeConfigSecretReference{Name: "prod"}}}
}

func as(account string) func(*v1alpha1.BundleDeployment) {
	return func(d *v1alpha1.BundleDeployment) { d.Spec.Target.ServiceAccountName = account }
}

func (a *abroad) user(account string) string {
	return "system:serviceaccount:" + a.there + ":" + account
}

// On the other cluster every request is made by the user of the kubeconfig, or
// impersonates the remote ServiceAccount. The controller itself and the local
// ServiceAccount make none there.
func TestT7RemoteIsTheUserOrTheServiceAccountThere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for account, key := range map[string]string{"": "value", "deployer": "other"} {
		t.Run("as "+account, func(t *testing.T) {
			t.Parallel()
			a := r.newAbroad(t)
			a.mayImpersonate(t)
			a.store(t, map[string]string{key: a.kubeconfig(t, "agent", nil)})
			mark := r.mark(t)
			published := r.publish(t, a.namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": workload("web", "example.org/web:1")})
			d := r.deploy(t, a.namespace, "app", both(a.goes, as(account), func(d *v1alpha1.BundleDeployment) {
				if key != "value" {
					d.Spec.Target.ClusterReference.KubeConfig.SecretRef.Key = key
				}
			}))
			r.ready(t, d, published.Revision)
			r.patch(t, r.must(t, aConfigMap(a.there, "a")), `{"data":{"value":"changed"}}`)
			r.holds(t, a.there, "a", "one")
			r.remove(t, d)
			if r.get(t, aConfigMap(a.there, "a")) || r.get(t, object("apps/v1", "Deployment", a.there, "web")) {
				t.Error("the removal left something there")
			}
			a.checkWho(t, mark, account)
		})
	}
}

// checkWho checks the users of all requests in the remote namespace.
func (a *abroad) checkWho(t *testing.T, mark controlplane.AuditMark, account string) {
	t.Helper()
	impersonated := ""
	if account != "" {
		impersonated = "system:serviceaccount:" + a.namespace + ":" + account
	}
	seen := 0
	for _, e := range a.audit(t, mark, func(controlplane.AuditEvent) bool { return true }) {
		switch {
		case e.User == controllerUser && strings.Contains(e.RequestURI, a.there):
			t.Errorf("as the controller: %v", e)
		case e.User == controllerUser && e.Namespace == a.namespace && e.ImpersonatedUser != "" && (e.Resource != "secrets" || e.Verb != "get"):
			t.Errorf("as the local ServiceAccount: %v", e)
		case e.User == a.user("agent") && account != "" && e.ImpersonatedUser == "" && e.Verb == "create" && e.Resource == "selfsubjectaccessreviews":
			// The user asks for itself whether its writes may name the deployment.
		case e.User == a.user("agent") && e.ImpersonatedUser != impersonated:
			t.Errorf("not as %q: %v", impersonated, e)
		case e.User == a.user("agent"):
			seen++
		}
	}
	if seen < 5 {
		t.Errorf("only %d requests there", seen)
	}
}

func TestT9KubeconfigsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	trap := t.TempDir() + "/trap"
	refused := map[string]struct {
		change func(cluster, user map[string]any)
		says   string
	}{
		"exec": {func(_, user map[string]any) {
			user["exec"] = map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "args": []string{trap}}
		}, `secret NS/prod: kubeconfig: users["prod"].exec is not accepted, and nothing is executed`},
		"token file": {func(_, user map[string]any) {
			user["tokenFile"] = "/var/run/secrets/kubernetes.io/serviceaccount/token"
		}, `users["prod"].tokenFile names a file`},
		"link-local": {func(cluster, _ map[string]any) { cluster["server"] = "https://169.254.7.7:6443" },
			"secret NS/prod: the API server 169.254.7.7:6443: the address 169.254.7.7 is denied (link-local)"},
		"metadata": {func(cluster, _ map[string]any) { cluster["server"] = "https://[::ffff:169.254.169.254]" }, "is denied (metadata service)"},
	}
	for name, c := range refused {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := r.newAbroad(t)
			a.store(t, map[string]string{"value.yaml": a.kubeconfig(t, "agent", c.change)})
			published := r.publish(t, a.namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
			key := r.deploy(t, a.namespace, "app", both(a.goes, rarely))
			d := r.unready(t, key, v1alpha1.ReasonKubeConfigRefused)
			if says := strings.ReplaceAll(c.says, "NS", a.namespace); !conditions.IsTrue(d, "Stalled") || !strings.Contains(conditions.GetMessage(d, "Ready"), says) {
				t.Errorf("want it stalled with %q:\n%s", says, describe(d))
			}
			a.store(t, map[string]string{"value": a.kubeconfig(t, "agent", nil)}) // which is seen soon, although the interval is long
			r.ready(t, key, published.Revision)
		})
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("a command was executed")
	}
}

func TestKubeconfigThatCannotBeHad(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.newAbroad(t)
	published := r.publish(t, a.namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, a.namespace, "app", a.goes)
	says := func(reason, text string) {
		t.Helper()
		text = strings.ReplaceAll(text, "NS", a.namespace)
		r.until(t, key, reason+": "+text, func(d *v1alpha1.BundleDeployment) bool {
			return conditions.GetReason(d, "Ready") == reason && strings.Contains(conditions.GetMessage(d, "Ready"), text)
		})
	}
	says(v1alpha1.ReasonKubeConfigNotFound, "secret NS/prod does not exist")
	a.store(t, map[string]string{"config": "a"})
	says(v1alpha1.ReasonKubeConfigNotFound, `secret NS/prod has no key "value"`)
	a.grant(t, a.there, "unprivileged")
	a.store(t, map[string]string{"value": a.kubeconfig(t, "unprivileged", nil)})
	says(v1alpha1.ReasonClusterDenied, "has to be allowed to get the namespace kube-system there")
	a.store(t, map[string]string{"value": a.kubeconfig(t, "agent", func(_, user map[string]any) { user["token"] = "expired" })})
	says(v1alpha1.ReasonClusterDenied, "does not accept the credentials")
	a.store(t, map[string]string{"value": a.kubeconfig(t, "agent", nil)})
	r.ready(t, key, published.Revision)
	r.edit(t, key, as("deployer"))
	says(v1alpha1.ReasonClusterDenied, "and the user of the kubeconfig to impersonate it")
	a.mayImpersonate(t)
	r.ready(t, key, published.Revision)
	r.delete(t, object("rbac.authorization.k8s.io/v1", "RoleBinding", a.namespace, "installer"))
	says(v1alpha1.ReasonKubeConfigNotFound, "serviceaccount NS/installer may not get secret NS/prod")
	a.bind(t, a.namespace, "installer", rbacv1.Subject{Kind: "ServiceAccount", Namespace: a.namespace, Name: "installer"})
	r.ready(t, key, published.Revision)
	r.remove(t, key) // while the permissions exist
}

// Another kubeconfig in the Secret is used from the next reconcile on.
func TestKubeconfigIsRotated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.newAbroad(t)
	a.store(t, map[string]string{"value": a.kubeconfig(t, "agent", nil)})
	published := r.publish(t, a.namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, a.namespace, "app", a.goes)
	r.ready(t, key, published.Revision)
	if err := installation.Admin(t.Context(), r.admin, a.there, "successor"); err != nil {
		t.Fatal(err)
	}
	a.store(t, map[string]string{"value": a.kubeconfig(t, "successor", nil)})
	r.handled(t, key)
	mark := r.mark(t)
	r.handled(t, key)
	users := map[string]bool{}
	for _, e := range r.audit(t, mark, func(e controlplane.AuditEvent) bool { return strings.HasPrefix(e.User, a.user("")) }) {
		users[e.User] = true
	}
	if got := slices.Collect(maps.Keys(users)); len(got) != 1 || got[0] != a.user("successor") {
		t.Errorf("asked as %v", got)
	}
}

// A cluster that does not answer is named, its deployments do not block others, and a
// removal says how to finish it.
func TestS7UnreachableClusterDoesNotAffectOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.newAbroad(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	a.store(t, map[string]string{"value": a.kubeconfig(t, "agent", nil)})
	published := r.publish(t, a.namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, a.namespace, "app", a.goes)
	r.ready(t, key, published.Revision)
	a.store(t, map[string]string{"value": a.kubeconfig(t, "agent", func(cluster, _ map[string]any) { cluster["server"] = "https://" + silent.Addr().String() })})
	for _, name := range []string{"b", "c", "d", "e", "f", "g", "h", "i", "j"} { // more than there are workers
		r.publish(t, a.namespace, name, "v1", fstest.MapFS{"a.yaml": configMap(name, "one")})
		r.deploy(t, a.namespace, name, a.goes)
	}
	began := time.Now()
	elsewhere := r.namespace(t)
	local := r.publish(t, elsewhere, "local", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	r.ready(t, r.deploy(t, elsewhere, "local", nil), local.Revision)
	if took := time.Since(began); took > 30*time.Second { // a worker that waits for the silent server waits for much longer
		t.Errorf("a deployment of another namespace took %s", took)
	}
	d := r.unready(t, key, v1alpha1.ReasonClusterUnreachable)
	if want := "secret " + a.namespace + "/prod: the API server " + silent.Addr().String(); !strings.Contains(conditions.GetMessage(d, "Ready"), want) {
		t.Errorf("the message does not name the cluster as %q:\n%s", want, describe(d))
	}
	r.startRemoval(t, key)
	r.until(t, key, "the removal names the way out", func(d *v1alpha1.BundleDeployment) bool {
		return strings.Contains(conditions.GetMessage(d, "Ready"), "abandon it with the annotation "+v1alpha1.AbandonAnnotation+"=now")
	})
	if !r.get(t, aConfigMap(a.there, "a")) {
		t.Error("the object is gone although its cluster does not answer")
	}
	a.store(t, map[string]string{"value": a.kubeconfig(t, "agent", nil)}) // it comes back
	r.gone(t, aConfigMap(a.there, "a"))
}

// Unless flags permit them, loopback and the controller's own cluster are refused.
func TestT9OwnClusterIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.newAbroad(t)
	a.store(t, map[string]string{"value": a.kubeconfig(t, "agent", nil)})
	published := r.publish(t, a.namespace, "app", "v1", fstest.MapFS{"a.yaml": configMap("a", "one")})
	key := r.deploy(t, a.namespace, "app", both(a.goes, rarely))
	r.ready(t, key, published.Revision)
	driven := r.drive(t, key, nil)
	refusal := func() string {
		driven.reconcile(t)
		d := driven.deployment(t)
		if conditions.GetReason(d, "Ready") != v1alpha1.ReasonKubeConfigRefused || !conditions.IsTrue(d, "Stalled") {
			t.Errorf("not refused:\n%s", describe(d))
		}
		return conditions.GetMessage(d, "Ready")
	}
	driven.Change(func(deps *deployment.Deps) { deps.Remotes = remotes(t) })
	if got := refusal(); !strings.Contains(got, "is the cluster that the controller runs in") {
		t.Errorf("it says %s", got)
	}
	driven.Change(func(deps *deployment.Deps) { deps.Remotes = strictRemotes() })
	if got := refusal(); !strings.Contains(got, "is denied (loopback): only --egress-allow can permit it") {
		t.Errorf("it says %s", got)
	}
	guarded := guard.AddressPolicy{
		Allow:     []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Protected: guard.NewProtected(egress.APIServers(r.cp.RESTConfig().Host, "")...),
	}
	driven.Change(func(deps *deployment.Deps) {
		deps.Remotes = tenant.NewRemotes(guarded.Dialer(guard.Access{}), tenant.Options{})
	})
	if got := refusal(); !strings.Contains(got, "the Kubernetes API server") {
		t.Errorf("it says %s", got)
	}
	driven.Change(func(deps *deployment.Deps) { deps.Remotes, deps.OwnCluster = remotes(t), true })
	driven.ready(t)
}

// The certificates of webhooks, with the key of their CA, are on the cluster of the
// objects.
func TestCertificatesAreOnTheOtherCluster(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.newAbroad(t)
	if err := installation.Admin(t.Context(), r.admin, a.there, "admin"); err != nil {
		t.Fatal(err)
	}
	a.store(t, map[string]string{"value": a.kubeconfig(t, "admin", nil)})
	group := r.group(t, a.there)
	published := r.publish(t, a.namespace, "app", "v1", operator(group, "1.0.0"))
	key := r.deploy(t, a.namespace, "app", a.goes)
	r.ready(t, key, published.Revision)
	for _, name := range []string{authoritySecret, servingSecret} {
		if !r.get(t, object("v1", "Secret", a.there, name)) || r.get(t, object("v1", "Secret", a.namespace, name)) {
			t.Errorf("secret %s is not there, or is here", name)
		}
	}
	if why := r.verifies(t, a.there, group, time.Now()); why != "" {
		t.Errorf("the webhooks could not be called: %s", why)
	}
}

// remotes may go to loopback; strictRemotes may not.
func remotes(t *testing.T) *tenant.Remotes {
	t.Helper()
	policy := guard.AddressPolicy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	return tenant.NewRemotes(policy.Dialer(guard.Access{}), tenant.Options{})
}

func strictRemotes() *tenant.Remotes {
	return tenant.NewRemotes(guard.AddressPolicy{}.Dialer(guard.Access{}), tenant.Options{})
}

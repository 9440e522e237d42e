// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// badService is refused by the API server.
var badService = file("apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 99999}]}\n")

// F34: a revision is applied half, another client edits what was written, and the next
// revision changes the same field: it is the deployment's. A field that only they have is not.
func TestF34HalfAppliedThenEdited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	r.publish(t, namespace, "app", "v1", fstest.MapFS{"x.yaml": configMap("x", "one"), "web.yaml": badService})
	key := r.deploy(t, namespace, "app", quick)
	r.until(t, key, "the Service is refused", func(d *v1alpha1.BundleDeployment) bool {
		return conditions.IsFalse(d, meta.ReadyCondition) && d.Status.Inventory != nil && r.value(t, t.Context(), namespace, "x") == "one"
	})
	r.patch(t, aConfigMap(namespace, "x"), `{"data":{"value":"theirs","more":"theirs"}}`)
	second := r.publish(t, namespace, "app", "v2", fstest.MapFS{"x.yaml": configMap("x", "two")})
	r.ready(t, key, second.Revision)
	if got := r.value(t, t.Context(), namespace, "x"); got != "two" {
		t.Errorf("the field has %q", got)
	}
	third := file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {value: three, more: ours}\n")
	r.publish(t, namespace, "app", "v3", fstest.MapFS{"x.yaml": third})
	d := r.unready(t, key, v1alpha1.ReasonDryRunFailed)
	if message := conditions.GetMessage(d, meta.ReadyCondition); !strings.Contains(message, ".data.more") || strings.Contains(message, ".data.value") {
		t.Errorf("what others had first is not theirs: %s", message)
	}
}

// F34: the controller is killed between a write and the status that records it. Another
// client edits the object meanwhile. The next process converges: with the same revision also
// without its volume, and with the next revision.
func TestF34KilledThenEdited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	upgraded := file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {value: two, added: ours}\n")
	for name, tc := range map[string]struct {
		reason string
		// before is installed, if given, killed is what is being applied, and after follows.
		before, killed, after *fstest.MapFile
		volumeLost            bool
	}{
		"install, same revision":         {"the plan was recorded by hash", nil, configMap("x", "two"), nil, false},
		"install, volume lost":           {"the status is enough", nil, configMap("x", "two"), nil, true},
		"install, next revision":         {"the fields that were begun are known", nil, configMap("x", "two"), configMap("x", "three"), false},
		"upgrade with a field":           {"the field was planned, and had no owner then", configMap("x", "one"), upgraded, nil, false},
		"upgrade, volume lost":           {"the status is enough", configMap("x", "one"), upgraded, nil, true},
		"upgrade, then another revision": {"both contents are known", configMap("x", "one"), upgraded, configMap("x", "three"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			publish := func(version string, of *fstest.MapFile) string {
				return r.publish(t, namespace, "app", version, fstest.MapFS{"x.yaml": of}).Revision
			}
			key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
				rarely(d)
				d.Labels = map[string]string{driven: ""}
			})
			t.Cleanup(func() { r.undrive(t, key) })
			d := r.drive(t, key, nil)
			if tc.before != nil {
				publish("v1", tc.before)
				d.ready(t)
			}
			revision := publish("v2", tc.killed)
			d = d.again(t, dyingAfter("/configmaps/"))
			d.untilKilled(t, "two")
			r.patch(t, aConfigMap(namespace, "x"), `{"data":{"value":"theirs","added":"theirs"}}`)
			if tc.after != nil {
				revision = publish("v3", tc.after)
			}
			if tc.volumeLost {
				if err := os.RemoveAll(filepath.Join(d.cache, "applied")); err != nil {
					t.Fatal(err)
				}
			}
			d = d.again(t, nil)
			d.DoNotWaitForConversions() // or what was begun would be undone meanwhile
			found, _ := d.ready(t)
			want := map[bool]string{true: "two", false: "three"}[tc.after == nil]
			if got := r.value(t, t.Context(), namespace, "x"); got != want || found.Status.Applied.Revision != revision {
				t.Errorf("%s: the field has %q, want %q\n%s", tc.reason, got, want, describe(found))
			}
			if d.contents(t); strings.Contains(d.contents(t), `"begun"`) {
				t.Error("what was begun is kept although it ended")
			}
		})
	}
}

// F34: an upgrade is killed after it wrote an object, and another client edits what was written. Before it is
// tried again, the applied revision is corrected, or another upgrade is begun and killed as well. The fields of the first one
// still count as the deployment's.
func TestF34BegunBeforeAnotherWrite(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	upgraded := func(value string) *fstest.MapFile {
		return file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {value: " + value + ", added: ours}\n")
	}
	tests := map[string]struct {
		reason  string
		between func(t *testing.T, d *driver, publish func(string, fs.FS)) *driver
	}{
		"drift correction": {"a broken revision has the applied one corrected", func(t *testing.T, d *driver, publish func(string, fs.FS)) *driver {
			publish("v3", broken())
			d = d.again(t, nil)
			r.eventually(t, t.Context(), "the applied revision is corrected", func(ctx context.Context) (bool, string) {
				d.reconcile(t)
				return r.value(t, ctx, d.key.Namespace, "x") == "one", describe(d.deployment(t))
			})
			return d.again(t, nil)
		}},
		"another upgrade": {"it replaces the hash in the inventory", func(t *testing.T, d *driver, publish func(string, fs.FS)) *driver {
			publish("v3", fstest.MapFS{"x.yaml": configMap("x", "three")})
			d = d.again(t, dyingAfter("/configmaps/")) // that is the conflict with the other client
			r.eventually(t, t.Context(), "it is killed", func(ctx context.Context) (bool, string) {
				_, err := d.Reconcile(ctx, ctrl.Request{NamespacedName: d.key})
				return errors.Is(err, errDead), fmt.Sprint(err)
			})
			return d.again(t, nil)
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			revision := ""
			publish := func(version string, files fs.FS) { revision = r.publish(t, namespace, "app", version, files).Revision }
			key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) {
				rarely(d)
				d.Labels = map[string]string{driven: ""}
			})
			t.Cleanup(func() { r.undrive(t, key) })
			d := r.drive(t, key, nil)
			publish("v1", fstest.MapFS{"x.yaml": configMap("x", "one")})
			d.ready(t)
			publish("v2", fstest.MapFS{"x.yaml": upgraded("two")})
			d = d.again(t, dyingAfter("/configmaps/"))
			d.untilKilled(t, "two")
			r.patch(t, aConfigMap(namespace, "x"), `{"data":{"value":"theirs","added":"theirs"}}`)
			d = tc.between(t, d, publish)
			publish("v4", fstest.MapFS{"x.yaml": upgraded("four")})
			d.DoNotWaitForConversions() // or the applied revision would be corrected meanwhile
			found, _ := d.ready(t)
			if got := r.value(t, t.Context(), namespace, "x"); got != "four" || found.Status.Applied.Revision != revision {
				t.Errorf("%s: the field has %q\n%s", tc.reason, got, describe(found))
			}
			if strings.Contains(d.contents(t), `"begun"`) {
				t.Error("what was begun is kept although it ended")
			}
		})
	}
}

// untilKilled reconciles until the process of the driver dies after it wrote the value of ConfigMap x.
func (d *driver) untilKilled(t *testing.T, value string) {
	t.Helper()
	d.r.eventually(t, t.Context(), "it is killed after the write", func(ctx context.Context) (bool, string) {
		_, err := d.Reconcile(ctx, ctrl.Request{NamespacedName: d.key}) // which ends while the bundle is converted
		return d.r.value(t, ctx, d.key.Namespace, "x") == value, fmt.Sprint(err)
	})
}

// undrive returns a deployment to the running controller.
func (r *rig) undrive(t *testing.T, key client.ObjectKey) {
	t.Helper()
	d := object("satchel.dev/v1alpha1", "BundleDeployment", key.Namespace, key.Name)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+driven+`":null}}}`))
	if err := client.IgnoreNotFound(r.admin.Patch(context.WithoutCancel(t.Context()), d, patch)); err != nil {
		t.Error(err)
	}
}

// dyingAfter are connections that end with the answer to the first write to a path.
func dyingAfter(path string) func(http.RoundTripper) http.RoundTripper {
	dead := make(chan struct{})
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			select {
			case <-dead:
				return nil, errDead
			default:
			}
			response, err := next.RoundTrip(request)
			if err == nil && changes(request) && strings.Contains(request.URL.Path, path) {
				close(dead)
				return nil, errors.Join(errDead, response.Body.Close())
			}
			return response, err
		})
	}
}

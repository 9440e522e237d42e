// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// converted is a release of operator with the CRD of one version, or with two and a conversion webhook on a port; v2 is stored then. Its
// Pods run on a node that has a label of the group.
func converted(group string, port int) fstest.MapFS {
	files := serving(group, port)
	csv, crd := files["manifests/clusterserviceversion.yaml"], files["manifests/gadgets.yaml"]
	text := strings.Replace(string(csv.Data), "replicas: 0", "replicas: 1", 1)
	text = strings.Replace(text, "containers: [{name: manager", `nodeSelector: {"`+group+`": here}`+"\n              containers: [{name: manager", 1)
	first, conversion := strings.Index(text, "  - type: ValidatingAdmissionWebhook"), strings.Index(text, "  - type: ConversionWebhook")
	text = text[:first] + text[conversion:]
	definition := strings.NewReplacer("storage: true", "storage: false", "storage: false", "storage: true").Replace(string(crd.Data))
	if port == 0 {
		text = text[:strings.Index(text, "  webhookdefinitions:")]
		text = strings.Replace(text, "    - {name: gadgets."+group+", version: v2, kind: Gadget}\n", "", 1)
		definition = string(crd.Data)[:strings.Index(string(crd.Data), "  - name: v2")]
	}
	csv.Data, crd.Data = []byte(text), []byte(definition)
	return files
}

// gadgetState describes the CRD: its conversion strategy, its versions, and the one that is stored.
func (r *rig) gadgetState(t *testing.T, group string) string {
	t.Helper()
	crd := r.must(t, object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "gadgets."+group))
	state, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		state += fmt.Sprintf(" %s", fields["name"])
		if fields["storage"] == true {
			state += "!"
		}
	}
	return state
}

// F50 (olm-convrace): an upgrade brings a conversion webhook with Pods that do not start. Custom resources are written as before, the
// status says what is waited for, and the way back is open; when the Pods run, conversion and storage are switched, and the way
// back stores everything as before.
func TestF50ConversionWebhookThatDoesNotRunYet(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	group := r.group(t, namespace)
	gadget := func(name string) *unstructured.Unstructured { return object(group+"/v1", "Gadget", namespace, name) }
	first, second := converted(group, 0), converted(group, r.serve(t, namespace))
	one := r.publish(t, namespace, "app", "v1", first)
	r.nodeRuns(t, group) // the first release runs
	key := r.deploy(t, namespace, "app", func(d *v1alpha1.BundleDeployment) { d.Spec.RetryInterval = v1alpha1.Duration{Duration: 1e9} })
	r.ready(t, key, one.Revision)
	r.create(t, gadget("one"))

	r.nodeRunsNot(t, group)
	r.publish(t, namespace, "app", "v2", second)
	waits := func() {
		t.Helper()
		r.until(t, key, "it waits for the webhook", says("conversion webhook of gadgets."+group, "stored as v1", "Deployment"))
		if state := r.gadgetState(t, group); state != "None v1! v2" {
			t.Errorf("meanwhile the CRD is %q", state)
		}
		r.patch(t, gadget("one"), `{"spec":{"size":1}}`)
	}
	waits()
	back := r.publish(t, namespace, "app", "v1", first)
	r.nodeRuns(t, group)
	r.ready(t, key, back.Revision)
	r.patch(t, gadget("one"), `{"spec":{"size":2}}`)

	r.nodeRunsNot(t, group)
	two := r.publish(t, namespace, "app", "v2", second)
	waits()
	r.nodeRuns(t, group)
	r.ready(t, key, two.Revision)
	if state := r.gadgetState(t, group); state != "Webhook v1 v2!" {
		t.Errorf("in the end the CRD is %q", state)
	}
	r.eventually(t, t.Context(), "the conversion answers", func(ctx context.Context) (bool, string) {
		if err := r.redirect(ctx, namespace); err != nil {
			return false, err.Error()
		}
		err := r.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "one"}, object(group+"/v2", "Gadget", namespace, "one"))
		return err == nil, fmt.Sprint(err)
	})

	last := r.publish(t, namespace, "app", "v1", first)
	r.ready(t, key, last.Revision)
	if state := r.gadgetState(t, group); state != "None v1!" {
		t.Errorf("after going back the CRD is %q", state)
	}
	size, _, _ := unstructured.NestedInt64(r.must(t, gadget("one")).Object, "spec", "size")
	if size != 1 { // as waits has written it last
		t.Errorf("size is %d after going back", size)
	}
}

// TestF50Convrace is the public report itself: a version with Pods that never start, and the way back.
func TestF50Convrace(t *testing.T) {
	t.Parallel()
	version := func(name string) fstest.MapFS {
		root, files := os.DirFS("../../../../shared/cases/olm-convrace/"+name), fstest.MapFS{}
		_ = fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := fs.ReadFile(root, path)
			files[path] = &fstest.MapFile{Data: content}
			return err
		})
		if len(files) == 0 {
			t.Skip("the cases of public bug reports are not beside the repository (../shared/cases)")
		}
		return files
	}
	r := newRig(t)
	namespace := r.namespace(t)
	t.Cleanup(func() {
		_ = r.admin.Delete(context.WithoutCancel(t.Context()), object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "casks.cask.example.org"))
	})
	cask := func() *unstructured.Unstructured { return object("cask.example.org/v1", "Cask", namespace, "one") }
	first := r.publish(t, namespace, "app", "v1", version("1.0.0"))
	key := r.deploy(t, namespace, "app", quick)
	r.ready(t, key, first.Revision)
	r.create(t, cask())

	r.publish(t, namespace, "app", "v2", version("2.1.0"))
	r.until(t, key, "it waits for the webhook", says("conversion webhook of casks.cask.example.org", "stored as v1", "cask-manager"))
	for _, size := range []string{"3", "4"} {
		r.patch(t, cask(), `{"spec":{"size":`+size+`}}`)
	}
	back := r.publish(t, namespace, "app", "v1", version("1.0.0"))
	r.ready(t, key, back.Revision)
	r.patch(t, cask(), `{"spec":{"size":5}}`)
}

// nodeRuns lets the Pods of converted run, and nodeRunsNot no new ones.
func (r *rig) nodeRuns(t *testing.T, group string) { r.labelNode(t, group, `"here"`) }

func (r *rig) nodeRunsNot(t *testing.T, group string) { r.labelNode(t, group, "null") }

func (r *rig) labelNode(t *testing.T, label, value string) {
	t.Helper()
	var nodes corev1.NodeList
	if err := r.admin.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, label, value))
	if err := r.admin.Patch(t.Context(), &nodes.Items[0], patch); err != nil {
		t.Fatal(err)
	}
}

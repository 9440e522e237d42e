// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// previewed is of what plan -o json prints what the test looks at.
type previewed struct {
	Content string `json:"content"`
	Digest  string `json:"digest"`
	Objects []struct {
		Verb string `json:"verb"`
		Kind string `json:"kind"`
		Name string `json:"name"`
	} `json:"objects"`
}

func (r *rig) preview(t *testing.T, key client.ObjectKey, code int, args ...string) (v previewed) {
	t.Helper()
	got := r.satchel(t, key.Namespace, append([]string{"plan", key.Name, "-o", "json"}, args...)...)
	got.says(t, code)
	if err := json.Unmarshal([]byte(got.out), &v); err != nil {
		t.Fatalf("%v in %s", err, got.out)
	}
	return v
}

// verbs counts what becomes of objects.
func (v previewed) verbs() map[string]int {
	counts := map[string]int{}
	for _, o := range v.Objects {
		counts[o.Verb]++
	}
	return counts
}

// TestPreviewIsWhatIsDone compares what the command line shows of an image, before the source has it, with what the
// controllers do with it then.
func TestPreviewIsWhatIsDone(t *testing.T) {
	r := newRig(t)
	namespace := r.Namespace(t)
	bundle := func(color string) fstest.MapFS {
		return fstest.MapFS{"manifests/all.yaml": {Data: []byte(`
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: ` + color + `}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {password: ` + color + `}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: only-` + color + `}
`)}}
	}
	stable := r.Push(t, "preview:stable", bundle("red"))
	key := r.Deploy(t, namespace, "web", stable, nil)
	done := r.Ready(t, key)
	if v := r.preview(t, key, 0); v.Content != done.Status.Plan.Content || v.Content == "" || v.Digest != done.Status.Plan.Digest {
		t.Errorf("after the install: %+v, the controller's plan is %+v", v, done.Status.Plan)
	}

	next := r.Push(t, "preview:next", bundle("blue"))
	shown := r.preview(t, key, 1, "--image", next, "--insecure")
	if got := shown.verbs(); got["Create"] != 1 || got["Update"] != 2 || got["Delete"] != 1 || len(shown.Objects) != 4 {
		t.Errorf("the next image: %+v", shown.Objects)
	}
	r.Push(t, "preview:stable", bundle("blue"))
	r.satchel(t, namespace, "reconcile", "web", "--with-source").says(t, 0)
	done = r.Until(t, key, "the next image", func(d *v1alpha1.BundleDeployment) bool {
		return isReady(d) && d.Status.Plan != nil && d.Status.Plan.Content == shown.Content
	})
	v := r.preview(t, key, 0)
	if v.Content != shown.Content || len(v.Objects) != 0 || v.Digest != done.Status.Plan.Digest {
		t.Errorf("after the upgrade: %+v, the controller's plan is %+v", v, done.Status.Plan)
	}
	back := r.preview(t, key, 1, "--revision", "previous")
	if got := back.verbs(); got["Create"] != 1 || got["Update"] != 2 || got["Delete"] != 1 {
		t.Errorf("going back: %+v", back.Objects)
	}
}

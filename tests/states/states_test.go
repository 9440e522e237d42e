// SPDX-License-Identifier: Apache-2.0

package states

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/deployment/process"
	"github.com/satchel-dev/satchel/internal/format"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

var update = flag.Bool("update", false, "record the states of the current version")

// current is the folder of the recording that -update replaces. A tagged version keeps its own: see docs/dev/releases.md.
const current = "testdata/unreleased"

// patience bounds waiting for the controller; it is many times what it needs.
const patience = 3 * time.Minute

func TestMain(m *testing.M) {
	child.Main(jobs.Handlers())
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// world is a control plane with the deployment controller.
type world struct {
	cp        *controlplane.ControlPlane
	admin     client.Client
	published *installation.Deployments
	dir       string
}

// space is the namespace of a situation.
type space struct {
	*world

	namespace string
}

func start(t *testing.T, dir string, seeding func(context.Context, controlplane.Store) error, change func(*process.Options)) *world {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Nodes: -1, Seed: seeding})
	must(t, err)
	t.Cleanup(func() { _ = cp.Stop() })
	w := &world{cp: cp, dir: dir}
	w.admin, err = installation.Client(cp.RESTConfig())
	must(t, err)
	must(t, installation.Install(t.Context(), cp.RESTConfig()))
	w.published, err = installation.StartDeployments(t.Context(), cp.RESTConfig(), dir, 4, change)
	must(t, err)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) eventually(t *testing.T, what string, check func(context.Context) (bool, string)) {
	t.Helper()
	var seen string
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (done bool, _ error) {
		done, seen = check(ctx)
		return done, nil
	})
	if err != nil {
		t.Fatalf("waited in vain: %s; last seen:\n%s", what, seen)
	}
}

func (s *space) publish(t *testing.T, name string, files fs.FS) {
	t.Helper()
	_, err := s.published.Publish(t.Context(), s.namespace, name, "", files)
	must(t, err)
}

func (s *space) deploy(t *testing.T, name string, change func(*v1alpha1.BundleDeployment)) {
	t.Helper()
	d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	d.Spec.ServiceAccountName = "installer"
	d.Spec.SourceRef = &v1alpha1.SourceReference{Kind: v1alpha1.BundleSourceKind, Name: name}
	d.Spec.Health.Timeout = v1alpha1.Duration{Duration: patient}
	if change != nil {
		change(d)
	}
	must(t, s.admin.Create(t.Context(), d))
}

func (s *space) get(t *testing.T, name string) *v1alpha1.BundleDeployment {
	t.Helper()
	d := &v1alpha1.BundleDeployment{}
	must(t, s.admin.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, d))
	return d
}

// until waits until a deployment has a state. What was published last was attempted by then.
func (s *space) until(t *testing.T, name string, holds func(*v1alpha1.BundleDeployment) bool) {
	t.Helper()
	s.eventually(t, s.namespace, func(ctx context.Context) (bool, string) {
		var d v1alpha1.BundleDeployment
		var source v1alpha1.BundleSource
		key := client.ObjectKey{Namespace: s.namespace, Name: name}
		if err := s.admin.Get(ctx, key, &d); err != nil {
			return false, err.Error()
		}
		if err := s.admin.Get(ctx, key, &source); err != nil {
			return false, err.Error()
		}
		text, _ := json.MarshalIndent(d.Status, "", " ")
		newest := d.Status.Attempted.Revision == source.Status.Artifact.Revision || d.Status.Rejected.Revision != "" || d.Status.Attempted.Revision == ""
		return newest && d.Status.ObservedGeneration == d.Generation && holds(&d), string(text)
	})
}

func (s *space) edit(t *testing.T, name string, change func(*v1alpha1.BundleDeployment)) {
	t.Helper()
	d := s.get(t, name)
	before := d.DeepCopy()
	change(d)
	must(t, s.admin.Patch(t.Context(), d, client.MergeFrom(before)))
}

func (s *space) patch(t *testing.T, version, kind, name, text string) {
	t.Helper()
	must(t, s.admin.Patch(t.Context(), live(version, kind, s.namespace, name), client.RawPatch(types.MergePatchType, []byte(text))))
}

func (s *space) remove(t *testing.T, name string) {
	t.Helper()
	must(t, s.admin.Delete(t.Context(), s.get(t, name)))
}

func (s *space) approve(t *testing.T, name string) {
	t.Helper()
	s.until(t, name, pending)
	approval := &v1alpha1.BundleApproval{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "yes"}}
	approval.Spec = v1alpha1.BundleApprovalSpec{Deployment: name, Plan: s.get(t, name).Status.Plan.Digest, Decision: v1alpha1.DecisionApprove}
	must(t, s.admin.Create(t.Context(), approval))
}

// TestF56Record records all situations with -update.
func TestF56Record(t *testing.T) {
	if !*update {
		t.Skip("only with -update")
	}
	w := start(t, t.TempDir(), nil, func(*process.Options) {})
	t.Run("situations", func(t *testing.T) {
		for name, reach := range situations {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := &space{world: w, namespace: prefix + name}
				must(t, w.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}))
				must(t, installation.Admin(t.Context(), w.admin, s.namespace, "installer"))
				reach(t, s)
			})
		}
	})
	if t.Failed() {
		return
	}
	w.quiet(t, 0)
	must(t, record(t.Context(), w.cp, w.published.URL, w.dir, current))
}

// reconciles is how many reconciles of deployments have ended in this process.
func reconciles(t *testing.T) (count float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	must(t, err)
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, one := range family.GetMetric() {
			count += one.GetCounter().GetValue()
		}
	}
	return count
}

// quiet waits until there were so many reconciles, and no more for some seconds.
func (w *world) quiet(t *testing.T, least float64) {
	t.Helper()
	count, since := reconciles(t), time.Now()
	w.eventually(t, "no reconciles", func(context.Context) (bool, string) {
		if now := reconciles(t); now != count {
			count, since = now, time.Now()
		}
		return count >= least && time.Since(since) > 3*time.Second, fmt.Sprint(count, " reconciles")
	})
}

// What TestF56Load loads.
const (
	folderVariable  = "SATCHEL_STATES"
	variantVariable = "SATCHEL_STATES_VARIANT"
)

// TestF56States loads each recording, and wants the current code to leave it as it is. A process can have one controller, so that each is
// loaded by a process of its own.
func TestF56States(t *testing.T) {
	if *update {
		t.Skip("they are being recorded")
	}
	folders, err := filepath.Glob("testdata/*")
	must(t, err)
	if len(folders) == 0 {
		t.Fatal("nothing is recorded: run this test with -update")
	}
	for _, folder := range folders {
		for variant := range variants {
			t.Run(filepath.Base(folder)+", "+variant, func(t *testing.T) {
				loading := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestF56Load$", "-test.timeout=30m", "-test.v") //nolint:gosec // this test
				loading.Env = append(os.Environ(), folderVariable+"="+folder, variantVariable+"="+variant)
				said, err := loading.CombinedOutput()
				if err != nil || !bytes.Contains(said, []byte("--- PASS: TestF56Load")) {
					t.Errorf("%v:\n%s", err, said)
				}
			})
		}
	}
}

// TestF56Load loads one recording.
func TestF56Load(t *testing.T) {
	folder, variant := os.Getenv(folderVariable), os.Getenv(variantVariable)
	if folder == "" {
		t.Skip("TestF56States runs it")
	}
	load(t, folder, variant, variants[variant])
}

// variants change the text of objects and the files of a recording.
var variants = map[string]func(objects, files string, t *testing.T) string{
	"as recorded": func(objects, _ string, _ *testing.T) string { return objects },
	"files of another version": func(objects, files string, t *testing.T) string {
		eachSnapshot(t, files, func(content []byte) []byte {
			return bytes.Replace(content, []byte(format.Snapshot.Line()), []byte("satchel snapshot 99\n"), 1)
		})
		return objects
	},
	"damaged files": func(objects, files string, t *testing.T) string {
		eachSnapshot(t, files, func(content []byte) []byte { return content[:len(content)/2] })
		return objects
	},
	"no files, and keys of another version": func(objects, files string, t *testing.T) string {
		must(t, os.RemoveAll(filepath.Join(files, "cache")))
		return strings.ReplaceAll(objects, format.HashKey.Name()+":", "hash-key/99:")
	},
}

// differs are situations in which a variant makes a difference: hooks of a removal are known from the file only.
var differs = map[string]bool{"removal-hook-runs": true}

// eachSnapshot changes the files with what was applied last.
func eachSnapshot(t *testing.T, files string, change func([]byte) []byte) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(files, "cache", "applied", "*.snapshot"))
	must(t, err)
	if len(names) == 0 {
		t.Fatal("there are no files")
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		must(t, err)
		must(t, os.WriteFile(name, change(content), 0o600))
	}
}

func load(t *testing.T, folder, variant string, change func(objects, files string, t *testing.T) string) {
	var target *url.URL
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	t.Cleanup(proxy.Close)
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(filepath.Join(folder, filesFolder))))
	must(t, restrict(dir))
	text, err := os.ReadFile(filepath.Join(folder, objectsFile))
	must(t, err)
	all, err := recorded(change(string(text), dir, t), proxy.URL)
	must(t, err)
	before := reconciles(t)
	w := start(t, dir, func(ctx context.Context, store controlplane.Store) error { return seed(ctx, store, all) }, func(o *process.Options) {
		target, err = url.Parse(o.ArtifactServers[0])
		must(t, err)
		o.ArtifactServers = append(o.ArtifactServers, proxy.URL)
	})
	var deployments v1alpha1.BundleDeploymentList
	must(t, w.admin.List(t.Context(), &deployments))
	names := namesOf(all)
	if len(deployments.Items) < len(names) {
		t.Fatalf("%d deployments are there, of %d situations", len(deployments.Items), len(names))
	}
	w.quiet(t, before+float64(len(deployments.Items)))
	for _, name := range names {
		if !differs[name] || variant == "as recorded" {
			t.Run(name, func(t *testing.T) { w.unchanged(t, name, all) })
		}
	}
}

// namesOf are the situations of a recording.
func namesOf(all []object) (names []string) {
	for _, one := range all {
		if name, found := strings.CutPrefix(one.Key, "/registry/namespaces/"+prefix); found {
			names = append(names, name)
		}
	}
	return names
}

// restrict gives files the permissions that a controller expects.
func restrict(dir string) error {
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			return os.Chmod(name, 0o700) //nolint:gosec // a folder
		}
		return err
	})
}

// unchanged compares what is on the cluster with the recording of a situation.
func (w *world) unchanged(t *testing.T, name string, all []object) {
	approvals := 0
	for _, one := range all {
		was := &unstructured.Unstructured{Object: one.Object}
		if was.GetNamespace() != prefix+name {
			continue
		}
		is := live(was.GetAPIVersion(), was.GetKind(), was.GetNamespace(), was.GetName())
		must(t, w.admin.Get(t.Context(), client.ObjectKeyFromObject(was), is))
		switch was.GetKind() {
		case v1alpha1.BundleDeploymentKind:
			if diff := cmp.Diff(lasting(t, was), lasting(t, is)); diff != "" {
				t.Errorf("%s (-recorded +now):\n%s", was.GetName(), diff)
			}
		case "ConfigMap", "Secret", "Job", "PersistentVolumeClaim", v1alpha1.BundleApprovalKind:
			if is.GetResourceVersion() != fmt.Sprint(one.Revision) {
				t.Errorf("%s %s was written, -recorded +now:\n%s", was.GetKind(), was.GetName(), cmp.Diff(was.Object, is.Object))
			}
		}
		if was.GetKind() == v1alpha1.BundleApprovalKind {
			approvals++
		}
	}
	var list v1alpha1.BundleApprovalList
	must(t, w.admin.List(t.Context(), &list, client.InNamespace(prefix+name)))
	if len(list.Items) != approvals {
		t.Errorf("%d approvals, recorded %d", len(list.Items), approvals)
	}
}

// lasting is what has to stay of a deployment. Messages may be worded differently.
func lasting(t *testing.T, of *unstructured.Unstructured) map[string]any {
	t.Helper()
	text, err := json.Marshal(of.Object)
	must(t, err)
	var d v1alpha1.BundleDeployment
	must(t, json.Unmarshal(text, &d))
	if hooks := d.Status.Hooks; hooks != nil && hooks.Running != nil {
		hooks.Running.StartTime = metav1.Time{}
	}
	found := map[string]any{
		"applied": d.Status.Applied.Revision, "attempted": d.Status.Attempted.Revision, "rejected": d.Status.Rejected.Revision, "healthy": d.Status.Healthy.Revision,
		"hooks": d.Status.Hooks, "generation": d.Generation, "history": len(d.Status.History),
	}
	if d.Status.Internal.Executed != nil {
		found["executed"], found["approval"] = d.Status.Internal.Executed.StartTime.UTC().String(), d.Status.Internal.Executed.Approval
	}
	if d.Status.Plan != nil {
		found["plan"] = d.Status.Plan.Digest
	}
	if d.Status.Inventory != nil {
		var ids []string
		for _, entry := range d.Status.Inventory.Entries {
			ids = append(ids, entry.ID)
		}
		found["objects"] = strings.Join(ids, " ")
	}
	for _, condition := range d.Status.Conditions {
		found[condition.Type] = string(condition.Status) + " " + condition.Reason
	}
	return found
}

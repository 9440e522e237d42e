// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// cluster answers from memory and counts the requests.
type cluster struct {
	mu         sync.Mutex
	objects    map[string]*unstructured.Unstructured // by name
	pods       []unstructured.Unstructured
	getError   error
	classError error // for StorageClasses
	podError   error
	events     []unstructured.Unstructured
	gets       []string
	lists      []string
}

func (c *cluster) Get(_ context.Context, ref tenant.Ref) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gets = append(c.gets, ref.Name)
	if c.getError != nil {
		return nil, c.getError
	}
	if ref.Resource.Resource == "storageclasses" && c.classError != nil {
		return nil, c.classError
	}
	if found := c.objects[ref.Name]; found != nil {
		return found, nil
	}
	return nil, apierrors.NewNotFound(ref.Resource.GroupResource(), ref.Name)
}

func (c *cluster) List(_ context.Context, ref tenant.Ref, selector string, _ int) ([]unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists = append(c.lists, ref.Namespace+" "+selector)
	return c.pods, c.podError
}

func (c *cluster) Events(_ context.Context, namespace, uid string, _ int) ([]unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists = append(c.lists, "events "+namespace+" "+uid)
	return c.events, c.podError
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := object.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return object
}

func check(t *testing.T, c *cluster, texts ...string) health.Report {
	t.Helper()
	var objects []plan.Object
	c.objects = map[string]*unstructured.Unstructured{}
	for _, text := range texts {
		object := parse(t, text)
		c.objects[object.GetName()] = object
		objects = append(objects, plan.Object{ID: inventory.IDOf(object)})
	}
	report, err := health.Check(t.Context(), c, objects, nil)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// The state follows from an object's own status, by kind.
func TestStates(t *testing.T) {
	tests := map[string]struct {
		reason string
		object string
		want   health.State // empty: healthy
		words  string
	}{
		"deployment not seen": {
			"a status that its controller has not written means nothing, even with no replicas wanted",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 1}, spec: {replicas: 0}}`, health.InProgress, "not seen",
		},
		"deployment outdated": {
			"the status is of an older generation",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}}`, health.InProgress, "",
		},
		"deployment available": {
			"all replicas are there",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "True"}]}}`, "", "",
		},
		"deployment stuck": {
			"its deadline is over",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`, health.Failed, "",
		},
		"deployment without pods": {
			"the reason why no Pod could be created is told",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, conditions: [{type: ReplicaFailure, status: "True", message: "pods \"x\" is forbidden: exceeded quota."}]}}`, health.InProgress, "exceeded quota",
		},
		"job running":    {"a Job is done when it has completed", `{apiVersion: batch/v1, kind: Job, metadata: {name: x}, status: {active: 1, startTime: "2026-01-01T00:00:00Z"}}`, health.InProgress, "not completed"},
		"job complete":   {"that is what it is for", `{apiVersion: batch/v1, kind: Job, metadata: {name: x}, status: {conditions: [{type: Complete, status: "True"}]}}`, "", ""},
		"job failed":     {"it will not be retried", `{apiVersion: batch/v1, kind: Job, metadata: {name: x}, status: {conditions: [{type: Failed, status: "True", message: "BackoffLimitExceeded"}]}}`, health.Failed, "BackoffLimitExceeded"},
		"job suspended":  {"a user suspended it", `{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {suspend: true}}`, "", ""},
		"custom, silent": {"a custom resource without conditions is as it should be", `{apiVersion: example.org/v1, kind: Widget, metadata: {name: x, generation: 1}}`, "", ""},
		"custom, ready":  {"Ready says so", `{apiVersion: example.org/v1, kind: Widget, metadata: {name: x}, status: {conditions: [{type: Ready, status: "True"}]}}`, "", ""},
		"custom, not ready": {
			"Ready says otherwise", `{apiVersion: example.org/v1, kind: Widget, metadata: {name: x}, status: {conditions: [{type: Ready, status: "False", message: "no disk"}]}}`, health.InProgress, "no disk",
		},
		"custom, stalled":     {"it reports that it stopped", `{apiVersion: example.org/v1, kind: Widget, metadata: {name: x}, status: {conditions: [{type: Stalled, status: "True", message: "bad spec"}]}}`, health.Failed, "bad spec"},
		"custom, nonsense":    {"a status that cannot be read is not health", `{apiVersion: example.org/v1, kind: Widget, metadata: {name: x, generation: 1}, status: {observedGeneration: many}}`, health.Unknown, "cannot be read"},
		"terminating":         {"it goes away", `{apiVersion: example.org/v1, kind: Widget, metadata: {name: x, deletionTimestamp: "2026-01-01T00:00:00Z"}}`, health.Terminating, ""},
		"CRD not established": {"its kind is not served", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, status: {conditions: [{type: NamesAccepted, status: "False", message: "taken"}]}}`, health.Failed, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			report := check(t, &cluster{}, tc.object)
			if tc.want == "" {
				if !report.Healthy() {
					t.Fatalf("%s: got %+v", tc.reason, report.Unhealthy)
				}
				return
			}
			if len(report.Unhealthy) != 1 || report.Unhealthy[0].State != tc.want {
				t.Fatalf("%s: got %+v, want %s", tc.reason, report.Unhealthy, tc.want)
			}
			if !strings.Contains(report.Message(), tc.words) || report.Unhealthy[0].Message == "" {
				t.Errorf("%q does not say %q", report.Message(), tc.words)
			}
		})
	}
}

const waitingDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, generation: 1}, spec: {replicas: 1, selector: {matchLabels: {app: web}}}, status: {observedGeneration: 1}}`

// The message names the cause in the Pod, and does not change between retries.
func TestCauseInThePod(t *testing.T) {
	pod := func(status string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: shop}, status: ` + status + `}`
	}
	container := func(fields string) string {
		return pod(`{phase: Pending, containerStatuses: [{name: web, image: "r.example/web:v1", ` + fields + `}]}`)
	}
	tests := map[string]struct {
		reason string
		pods   []string
		want   string
	}{
		"pulling back off":      {"the kubelet waits", []string{container(`state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "x": ErrImagePull: not found'}}`)}, `Pod web-1: container web cannot pull image "r.example/web:v1": not found`},
		"pulling fails":         {"the kubelet tried", []string{container(`state: {waiting: {reason: ErrImagePull, message: not found}}`)}, `Pod web-1: container web cannot pull image "r.example/web:v1": not found`},
		"config missing":        {"a ConfigMap is not there", []string{container(`state: {waiting: {reason: CreateContainerConfigError, message: 'configmap "settings" not found'}}`)}, `container web cannot be started: configmap "settings" not found`},
		"crash loop":            {"it exits again and again", []string{container(`restartCount: 7, state: {waiting: {reason: CrashLoopBackOff, message: "back-off 40s"}}, lastState: {terminated: {exitCode: 3, reason: Error}}`)}, "container web keeps crashing with exit code 3"},
		"between two crashes":   {"the message must not flap", []string{container(`ready: false, state: {running: {}}, lastState: {terminated: {exitCode: 3, reason: Error}}`)}, "container web keeps crashing with exit code 3"},
		"just crashed":          {"nor here", []string{container(`state: {terminated: {exitCode: 3, reason: Error}}`)}, "container web keeps crashing with exit code 3"},
		"killed for memory":     {"the reason is worth a word", []string{container(`state: {terminated: {exitCode: 137, reason: OOMKilled}}`)}, "exit code 137 (OOMKilled)"},
		"unschedulable":         {"no node fits", []string{pod(`{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available."}]}`)}, "Pod web-1: cannot be scheduled: 0/3 nodes are available"},
		"not started":           {"it has a node and nothing happens there", []string{`{apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: shop}, spec: {nodeName: a}, status: {phase: Pending}}`}, "Pod web-1: is scheduled and has not started"},
		"evicted":               {"the Pod failed as a whole", []string{pod(`{phase: Failed, reason: Evicted, message: "low on memory"}`)}, "failed: Evicted low on memory"},
		"init container":        {"they come first", []string{pod(`{initContainerStatuses: [{name: init, image: i, state: {waiting: {reason: ErrImagePull}}}], containerStatuses: [{name: web, state: {waiting: {reason: PodInitializing}}}]}`)}, `container init cannot pull image "i"`},
		"not ready":             {"its probe fails", []string{container(`ready: false, state: {running: {}}`)}, "container web runs and is not ready"},
		"worst of several":      {"what cannot heal comes before what may", []string{container(`ready: false, state: {running: {}}`), strings.Replace(container(`state: {waiting: {reason: ErrImagePull, message: m}}`), "web-1", "web-2", 1)}, "Pod web-2: container web cannot pull"},
		"starting":              {"nothing is wrong yet", []string{container(`state: {waiting: {reason: ContainerCreating}}`)}, ""},
		"nothing to be learned": {"no Pod at all", nil, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &cluster{}
			for _, text := range tc.pods {
				c.pods = append(c.pods, *parse(t, text))
			}
			report := check(t, c, waitingDeployment)
			if !strings.Contains(report.Message(), tc.want) || strings.Contains(report.Message(), "40s") {
				t.Errorf("%s: %q does not say %q", tc.reason, report.Message(), tc.want)
			}
			if tc.want == "" && strings.Contains(report.Message(), "Pod ") {
				t.Errorf("%s: %q", tc.reason, report.Message())
			}
			if !slices.Equal(c.lists, []string{"shop app=web"}) {
				t.Errorf("listed %v", c.lists)
			}
		})
	}
}

// Without permission to list Pods the message says so, and is otherwise complete.
func TestPodsForbidden(t *testing.T) {
	c := &cluster{podError: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))}
	report := check(t, c, waitingDeployment)
	if len(report.Unhealthy) != 1 || !strings.Contains(report.Message(), "may not list its Pods") {
		t.Errorf("got %q", report.Message())
	}
}

// An object that may not be read is not healthy; a failed request is an error.
func TestReading(t *testing.T) {
	widget := plan.Object{ID: inventory.ID{Group: "example.org", Kind: "Widget", Namespace: "shop", Name: "x"}}
	settings := plan.Object{ID: inventory.ID{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "x", errors.New("no"))
	for name, tc := range map[string]struct {
		err  error
		want health.State
	}{
		"missing": {nil, health.Missing}, "forbidden": {forbidden, health.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cluster{getError: tc.err}
			report, err := health.Check(t.Context(), c, []plan.Object{widget, settings}, nil)
			if err != nil || len(report.Unhealthy) != 1 || report.Unhealthy[0].State != tc.want || report.Total != 2 {
				t.Errorf("got %+v, %v", report, err)
			}
			if !slices.Equal(c.gets, []string{"x"}) {
				t.Errorf("asked for %v: a ConfigMap costs nothing", c.gets)
			}
		})
	}
	c := &cluster{getError: errors.New("connection refused")}
	if _, err := health.Check(t.Context(), c, []plan.Object{widget}, nil); err == nil || !strings.Contains(err.Error(), "Widget.example.org shop/x") {
		t.Errorf("got %v, want an error that names the object", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := health.Check(ctx, &cluster{}, []plan.Object{widget}, nil); err == nil {
		t.Error("an ended context gives a report")
	}
	c = &cluster{}
	fresh := map[inventory.ID]*unstructured.Unstructured{widget.ID: parse(t, `{apiVersion: example.org/v1, kind: Widget, metadata: {name: x, namespace: shop}}`)}
	if report, err := health.Check(t.Context(), c, []plan.Object{widget}, fresh); err != nil || !report.Healthy() || len(c.gets) > 0 {
		t.Errorf("a fresh object was asked for: %v %v", c.gets, err)
	}
}

// The worst comes first, and the report does not depend on the order of objects.
func TestWorstFirst(t *testing.T) {
	texts := []string{
		`{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, status: {conditions: [{type: Ready, status: "False", message: m}]}}`,
		`{apiVersion: example.org/v1, kind: Widget, metadata: {name: b}, status: {conditions: [{type: Stalled, status: "True", message: m}]}}`,
		`{apiVersion: example.org/v1, kind: Widget, metadata: {name: c}}`,
		`{apiVersion: example.org/v1, kind: Widget, metadata: {name: d}, status: {conditions: [{type: Ready, status: "False", message: m}]}}`,
	}
	want := check(t, &cluster{}, texts...)
	if want.Unhealthy[0].Name != "b" || want.Unhealthy[1].Name != "a" || !want.Failed() || want.Total != 4 {
		t.Errorf("got %+v", want)
	}
	slices.Reverse(texts)
	if got := check(t, &cluster{}, texts...); got.Message() != want.Message() {
		t.Errorf("got %q, want %q", got.Message(), want.Message())
	}
}

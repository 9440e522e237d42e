// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
)

// health is what a script returns.
type health struct{ status, message string }

// scripts are the health scripts of the ConfigMap by kind.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, o := range render(t, "argocd") {
		data, ok := o.Object["data"].(map[string]any)
		if !ok {
			t.Fatal("the ConfigMap has no data")
		}
		for key, script := range data {
			found[strings.TrimPrefix(key, "resource.customizations.health.satchel.dev_")] = script.(string)
		}
	}
	return found
}

// assess runs a script as Argo CD does: on the libraries that it opens, with the object as obj.
func assess(t *testing.T, script string, object any) health {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString, lua.LoadLibName: lua.OpenPackage,
	} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	l.SetGlobal("obj", toLua(l, decoded))
	if err := l.DoString(script); err != nil {
		t.Fatal(err)
	}
	result, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returned %v", l.Get(-1))
	}
	return health{lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message"))}
}

// toLua makes a Lua value of what JSON was decoded to.
func toLua(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case bool:
		return lua.LBool(v)
	case float64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []any:
		list := l.NewTable()
		for _, item := range v {
			list.Append(toLua(l, item))
		}
		return list
	case map[string]any:
		table := l.NewTable()
		for key, item := range v {
			table.RawSetString(key, toLua(l, item))
		}
		return table
	}
	return lua.LNil
}

// approving adds the condition of a deployment that waits for an approval.
func approving(d *v1alpha1.BundleDeployment) {
	pipeline.SetCondition(d, "ApprovalPending", metav1.ConditionTrue, "PruneHeld", "12 objects would be deleted")
}

func TestArgoHealth(t *testing.T) {
	type deployment = v1alpha1.BundleDeployment
	cases := map[string]struct {
		reason  string
		change  func(*deployment)
		status  string
		message string
	}{
		"new":              {"the controller has not seen it: a sync wave waits", func(d *deployment) { d.Status.ObservedGeneration = -1 }, "Progressing", "waits for the controller"},
		"changed":          {"what the status says is about an older spec", func(d *deployment) { pipeline.SetReady(d, "Succeeded", "fine"); d.Status.ObservedGeneration = 2 }, "Progressing", "waits for the controller"},
		"progressing":      {"under way", func(d *deployment) { pipeline.SetProgressing(d, v1alpha1.ReasonHealthProgressing, "1 of 2 Pods") }, "Progressing", "1 of 2 Pods"},
		"ready":            {"all is well", func(d *deployment) { pipeline.SetReady(d, "Succeeded", "applied") }, "Healthy", "applied"},
		"retrying":         {"a hiccup must not fail a sync wave", func(d *deployment) { pipeline.SetRetrying(d, v1alpha1.ReasonApplyFailed, "no route") }, "Progressing", "is tried again: no route"},
		"source not ready": {"neither must an upstream that is away", func(d *deployment) { pipeline.SetRetrying(d, v1alpha1.ReasonSourceNotReady, "503") }, "Progressing", "is tried again: 503"},
		"unhealthy":        {"what is unhealthy after the timeout is", func(d *deployment) { pipeline.SetRetrying(d, v1alpha1.ReasonHealthFailed, "crash loop") }, "Degraded", "crash loop"},
		"stalled":          {"it needs user action", func(d *deployment) { pipeline.SetStalled(d, v1alpha1.ReasonConversionFailed, "no CSV") }, "Degraded", "no CSV"},
		"suspended":        {"whatever it was like", func(d *deployment) { pipeline.SetStalled(d, "Failed", "broken"); d.Spec.Suspend = true }, "Suspended", "suspended; broken"},
		"suspended, new":   {"also before the controller has seen it", func(d *deployment) { d.Spec.Suspend = true }, "Suspended", "suspended"},
		"being removed": {"a removal is under way", func(d *deployment) {
			d.DeletionTimestamp = &metav1.Time{}
			pipeline.SetProgressing(d, "Removing", "waiting for ns")
		}, "Progressing", "waiting for ns"},
		"held, running":     {"what runs is healthy, otherwise waits would time out", func(d *deployment) { pipeline.SetReady(d, "Succeeded", "applied"); approving(d) }, "Healthy", "applied; waits for an approval: 12 objects would be deleted"},
		"held, not running": {"the first revision waits for approval", func(d *deployment) { pipeline.SetRetrying(d, "ApprovalPending", "waits"); approving(d) }, "Suspended", "12 objects would be deleted"},
	}
	found := scripts(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &deployment{ObjectMeta: metav1.ObjectMeta{Name: "app", Generation: 3}}
			d.Status.ObservedGeneration = 3
			tc.change(d)
			if d.DeletionTimestamp != nil {
				now := metav1.Now()
				d.DeletionTimestamp = &now
			}
			if got, want := assess(t, found[v1alpha1.BundleDeploymentKind], d), (health{tc.status, tc.message}); got != want {
				t.Errorf("%+v, want %+v: %s", got, want, tc.reason)
			}
		})
	}
}

func TestArgoHealthOfSources(t *testing.T) {
	script := scripts(t)[v1alpha1.BundleSourceKind]
	source := &v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
	source.Status.ObservedGeneration = 1
	for want, say := range map[string]func(){
		"Healthy":     func() { pipeline.SetReady(source, "Succeeded", "m") },
		"Progressing": func() { pipeline.SetRetrying(source, v1alpha1.ReasonUnreachable, "m") },
		"Degraded":    func() { pipeline.SetStalled(source, v1alpha1.ReasonRefused, "m") },
	} {
		say()
		if got := assess(t, script, source); got.status != want {
			t.Errorf("%+v, want %s", got, want)
		}
	}
}

// TestArgoReasonsExist wants the reasons in the script to be those of the API.
func TestArgoReasonsExist(t *testing.T) {
	code, err := os.ReadFile("../api/v1alpha1/conditions.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`reason == ("\w+")`).FindAllStringSubmatch(scripts(t)[v1alpha1.BundleDeploymentKind], -1) {
		if !strings.Contains(string(code), " = "+match[1]) {
			t.Errorf("the script knows the reason %s, which no condition has", match[1])
		}
	}
}

// TestArgoScriptsAreForKindsThatExist wants a script for each kind, and no other.
func TestArgoScriptsAreForKindsThatExist(t *testing.T) {
	definitions, err := os.ReadDir("crd/bases")
	if err != nil {
		t.Fatal(err)
	}
	found := scripts(t)
	for _, definition := range definitions {
		content, err := os.ReadFile("crd/bases/" + definition.Name())
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct{ Names struct{ Kind string } }
		}
		if err := yaml.Unmarshal(content, &crd); err != nil {
			t.Fatal(err)
		}
		if found[crd.Spec.Names.Kind] == "" {
			t.Errorf("Argo CD is not told the health of a %s", crd.Spec.Names.Kind)
		}
		delete(found, crd.Spec.Names.Kind)
	}
	if len(found) > 0 {
		t.Errorf("scripts for kinds that do not exist: %v", found)
	}
}

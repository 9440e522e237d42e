// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
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

// assess runs a script as Argo CD does: on the libraries that it opens (that of strings is not among them), with the object as obj.
func assess(t *testing.T, script string, object any) health {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.LoadLibName: lua.OpenPackage,
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

func TestArgoHealth(t *testing.T) {
	script := scripts(t)[v1alpha1.BundleDeploymentKind]
	for name, tc := range deploymentStates() {
		t.Run(name, func(t *testing.T) {
			if got, want := assess(t, script, deploymentIn(tc)), (health{tc.argo, tc.message}); got != want {
				t.Errorf("%+v, want %+v: %s", got, want, tc.reason)
			}
		})
	}
}

func TestArgoHealthOfSources(t *testing.T) {
	script := scripts(t)[v1alpha1.BundleSourceKind]
	for name, tc := range sourceStates() {
		t.Run(name, func(t *testing.T) {
			if got := assess(t, script, sourceIn(tc)); got.status != tc.argo {
				t.Errorf("%+v, want %s: %s", got, tc.argo, tc.reason)
			}
		})
	}
}

// TestArgoHealthOfRollouts is R32.
func TestArgoHealthOfRollouts(t *testing.T) {
	script := scripts(t)[v1alpha1.BundleRolloutKind]
	for name, tc := range rolloutStates() {
		t.Run(name, func(t *testing.T) {
			if got, want := assess(t, script, rolloutIn(tc)), (health{tc.argo, tc.message}); got != want {
				t.Errorf("%+v, want %+v: %s", got, want, tc.reason)
			}
		})
	}
}

// TestArgoReasonsExist wants the reasons in the script to be those of the API.
func TestArgoReasonsExist(t *testing.T) {
	code := fmt.Sprintf(" = %q", v1alpha1.ReasonSuspended) // a constant of Flux
	for _, file := range []string{"conditions.go", "rollout_conditions.go"} {
		text, err := os.ReadFile("../api/v1alpha1/" + file)
		if err != nil {
			t.Fatal(err)
		}
		code += string(text)
	}
	for _, kind := range []string{v1alpha1.BundleDeploymentKind, v1alpha1.BundleRolloutKind} {
		for _, match := range regexp.MustCompile(`reason == ("\w+")`).FindAllStringSubmatch(scripts(t)[kind], -1) {
			if !strings.Contains(code, " = "+match[1]) {
				t.Errorf("the script of a %s knows the reason %s, which no condition has", kind, match[1])
			}
		}
	}
}

// TestArgoScriptsAreForKindsThatExist wants a script for each kind with a status, and no other.
func TestArgoScriptsAreForKindsThatExist(t *testing.T) {
	definitions, err := filepath.Glob("crd/bases/*.yaml")
	if err != nil || len(definitions) == 0 {
		t.Fatal("no CRDs:", err)
	}
	found := scripts(t)
	for _, definition := range append(definitions, "rollouts/crd/satchel.dev_bundlerollouts.yaml") {
		content, err := os.ReadFile(definition)
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Spec struct {
				Names    struct{ Kind string }
				Versions []struct{ Subresources map[string]any }
			}
		}
		if err := yaml.Unmarshal(content, &crd); err != nil {
			t.Fatal(err)
		}
		if _, hasStatus := crd.Spec.Versions[0].Subresources["status"]; !hasStatus {
			continue
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

// SPDX-License-Identifier: Apache-2.0

package deploymentconfig_test

import (
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/convert/registryv1/deploymentconfig"
)

// TestReadDeploymentConfig: the config is free-form in the CRD, so that all that an API server would have refused is refused
// here, with the path of the field.
func TestReadDeploymentConfig(t *testing.T) {
	variables := strings.TrimSuffix(strings.Repeat(`{"name":"A"},`, 501), ",")
	for name, tc := range map[string]struct{ reason, config, want string }{
		"none":           {"it is optional", ``, ""},
		"null":           {"as YAML writes nothing", `null`, ""},
		"empty":          {"changes nothing", `{}`, ""},
		"whole":          {"every field", `{"env":[{"name":"A","value":"b"},{"name":"C","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],"envFrom":[{"configMapRef":{"name":"a"}}],"volumes":[{"name":"a","emptyDir":{}}],"volumeMounts":[{"name":"a","mountPath":"/a"}],"tolerations":[{"operator":"Exists"}],"resources":{"limits":{"cpu":1}},"nodeSelector":{"a":"b"},"affinity":{"nodeAffinity":{}},"annotations":{"a":"b"}}`, ""},
		"mounted twice":  {"one volume, two paths", `{"volumeMounts":[{"name":"a","mountPath":"/a"},{"name":"a","mountPath":"/b"}]}`, ""},
		"selector":       {"OLM v0 has it, and would select nothing here", `{"selector":{}}`, "deploymentConfig.selector is not a known field"},
		"unknown deep":   {"the whole path", `{"tolerations":[{"key":"a","affect":"NoSchedule"}]}`, "deploymentConfig.tolerations[0].affect is not a known field"},
		"other case":     {"names are case-sensitive", `{"Env":[]}`, "deploymentConfig.Env is not a known field"},
		"repeated":       {"which one?", `{"nodeSelector":{"a":"b"},"nodeSelector":{}}`, `duplicate field "deploymentConfig.nodeSelector"`},
		"number":         {"YAML makes numbers of strings", `{"env":[{"name":"A","value":8080}]}`, "deploymentConfig.env[0].value is a number, not a string; put it into quotation marks"},
		"several":        {"a decoder stops at the first one", `{"env":[{"name":"A","value":1},{"name":"B","value":true}]}`, "deploymentConfig.env[1].value is true or false, not a string"},
		"not a list":     {"a mapping instead", `{"env":{"A":"b"}}`, "deploymentConfig.env is a mapping, not a list"},
		"no mapping":     {"stored by another CRD", `[]`, "deploymentConfig is a list, not a mapping"},
		"quantity":       {"types that read themselves", `{"resources":{"limits":{"cpu":"much"}}}`, "deploymentConfig.resources.limits.cpu is a string, not a valid Quantity"},
		"without name":   {"as in a Pod", `{"env":[{"value":"b"}]}`, "deploymentConfig.env[0].name is missing"},
		"set twice":      {"which value?", `{"env":[{"name":"A","value":"b"},{"name":"A","value":"c"}]}`, `deploymentConfig.env[1].name is "A", as that of entry 0`},
		"volumes":        {"which one?", `{"volumes":[{"name":"a"},{"name":"a"}]}`, `volumes[1].name is "a", as that of entry 0`},
		"nowhere":        {"where to?", `{"volumeMounts":[{"name":"a"}]}`, "volumeMounts[0].mountPath is missing"},
		"too many":       {"every container gets them", `{"env":[` + variables + `]}`, "env has 501 entries, at most 500 are possible"},
		"all at once":    {"one round of corrections", `{"a":1,"env":[{}],"volumes":[{}]}`, "volumes[0].name is missing"},
		"all at once, 2": {"one round of corrections", `{"a":1,"env":[{}],"volumes":[{}]}`, "deploymentConfig.a is not a known field"},
	} {
		t.Run(name, func(t *testing.T) {
			config, problems := deploymentconfig.Read([]byte(tc.config))
			var all []string
			for _, p := range problems {
				if p.Remedy == "" || p.Rule != "D7" {
					t.Errorf("no remedy or rule: %+v", p)
				}
				all = append(all, p.Message)
			}
			told := strings.Join(all, "\n")
			if tc.want == "" && (told != "" || (config == nil) != (len(tc.config) < 2 || tc.config == "null")) || !strings.Contains(told, tc.want) {
				t.Errorf("%s: %v, %q; want %q", tc.reason, config, told, tc.want)
			}
		})
	}
}

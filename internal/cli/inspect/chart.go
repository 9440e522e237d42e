// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm"
)

// chartSummary is what inspect shows of a chart.
type chartSummary struct {
	Name         string        `json:"name"`
	Version      string        `json:"version"`
	AppVersion   string        `json:"appVersion,omitempty"`
	KubeVersion  string        `json:"kubeVersion,omitempty"`
	ValuesSchema bool          `json:"valuesSchema"`
	Dependencies []string      `json:"dependencies,omitempty"`
	Hooks        []hookSummary `json:"hooks,omitempty"`
}

// hookSummary is an object of a chart that runs at points of a deployment's life.
type hookSummary struct {
	Kind           string   `json:"kind"`
	Namespace      string   `json:"namespace,omitempty"`
	Name           string   `json:"name"`
	Events         []string `json:"events"`
	Weight         int      `json:"weight"`
	DeletePolicies []string `json:"deletePolicies"`
}

// String is the hook for people.
func (h hookSummary) String() string {
	return fmt.Sprintf("%s %s: %s, weight %d, %s", h.Kind, strings.TrimPrefix(h.Namespace+"/"+h.Name, "/"), strings.Join(h.Events, ", "), h.Weight, strings.Join(h.DeletePolicies, ", "))
}

// addChart adds the metadata of a chart.
func (d *Description) addChart(said helm.Description, hooks []convert.Hook) {
	d.Chart = &chartSummary{
		Name: said.Name, Version: said.Version, AppVersion: said.AppVersion, KubeVersion: said.KubeVersion,
		ValuesSchema: said.Schema, Dependencies: said.Dependencies,
	}
	d.Description, d.MinKubeVersion = said.Description, cmp.Or(d.MinKubeVersion, said.KubeVersion)
	for _, hook := range hooks {
		d.Chart.Hooks = append(d.Chart.Hooks, hookSummary{
			Kind: hook.Object.GetKind(), Namespace: hook.Object.GetNamespace(), Name: hook.Object.GetName(),
			Events: hook.Events, Weight: hook.Weight, DeletePolicies: hook.DeletePolicies,
		})
	}
}

// printHead writes the metadata of a chart; nothing for other bundles.
func (c *chartSummary) printHead(p *page) {
	if c == nil {
		return
	}
	p.fact("Chart", strings.TrimSpace(c.Name+" "+c.Version))
	p.fact("App version", c.AppVersion)
	p.fact("Kubernetes", c.KubeVersion)
	p.fact("Charts in it", strings.Join(c.Dependencies, ", "))
	schema := "none"
	if c.ValuesSchema {
		schema = "values.schema.json"
	}
	p.fact("Schema of values", schema)
}

// SPDX-License-Identifier: Apache-2.0

package deployment_test

import "testing/fstest"

// configMap is a manifest of a ConfigMap with one value.
func configMap(name, value string) *fstest.MapFile {
	return file(`apiVersion: v1
kind: ConfigMap
metadata: {name: ` + name + `}
data: {value: "` + value + `"}
`)
}

// workload is a manifest of a Deployment of one replica.
func workload(name, image string) *fstest.MapFile {
	return file(`apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `}
spec:
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + `}}
    spec:
      containers: [{name: main, image: "` + image + `"}]
`)
}

func file(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content)} }

// crd is a manifest of a CRD of the kind Gadget in a group.
func crd(group string) *fstest.MapFile {
	return file(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.` + group + `}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`)
}

func gadget(group, name string) *fstest.MapFile {
	return file("apiVersion: " + group + "/v1\nkind: Gadget\nmetadata: {name: " + name + "}\nspec: {size: 1}\n")
}

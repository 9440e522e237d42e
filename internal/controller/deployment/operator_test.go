// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"strings"
	"testing/fstest"
)

// operator is a registry+v1 bundle with a Deployment that serves a validating, a
// mutating and a conversion webhook. No Pod of it runs in tests, so the webhooks'
// failures are ignored. Each test has its own group.
func operator(group, version string) fstest.MapFS {
	fill := strings.NewReplacer("GROUP", group, "VERSION", version)
	return fstest.MapFS{
		"metadata/annotations.yaml":            file(operatorAnnotations),
		"manifests/gadgets.yaml":               file(fill.Replace(operatorDefinition)),
		"manifests/clusterserviceversion.yaml": file(fill.Replace(operatorVersion)),
	}
}

const operatorAnnotations = `annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: gadgets
`

const operatorDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, description: Gadgets of VERSION, x-kubernetes-preserve-unknown-fields: true}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const operatorVersion = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: gadgets.vVERSION}
spec:
  displayName: Gadgets
  version: VERSION
  installModes:
  - {type: OwnNamespace, supported: false}
  - {type: SingleNamespace, supported: false}
  - {type: MultiNamespace, supported: false}
  - {type: AllNamespaces, supported: true}
  customresourcedefinitions:
    owned:
    - {name: gadgets.GROUP, version: v1, kind: Gadget}
    - {name: gadgets.GROUP, version: v2, kind: Gadget}
  install:
    strategy: deployment
    spec:
      deployments:
      - name: gadgets
        spec:
          replicas: 0
          selector: {matchLabels: {app: gadgets}}
          template:
            metadata: {labels: {app: gadgets}}
            spec:
              containers: [{name: manager, image: "registry.example.org/gadgets:VERSION"}]
  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    generateName: check.GROUP
    deploymentName: gadgets
    containerPort: 443
    targetPort: 9443
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Ignore
    webhookPath: /check
    rules: [{apiGroups: [GROUP], apiVersions: [v1], operations: [CREATE], resources: [gadgets]}]
  - type: MutatingAdmissionWebhook
    generateName: fill.GROUP
    deploymentName: gadgets
    containerPort: 443
    targetPort: 9443
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Ignore
    webhookPath: /fill
    rules: [{apiGroups: [GROUP], apiVersions: [v1], operations: [CREATE], resources: [gadgets]}]
  - type: ConversionWebhook
    generateName: convert.GROUP
    deploymentName: gadgets
    containerPort: 443
    targetPort: 9443
    admissionReviewVersions: [v1]
    sideEffects: None
    webhookPath: /convert
    conversionCRDs: [gadgets.GROUP]
`

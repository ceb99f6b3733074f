/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "api/schema_internal.h"

/* Volumes and claims.  Made by tools/schema; not for editing. */

/* A row a field. */
/* clang-format off */
static const struct hf_schema_field host_path_volume_source_fields[] = {
	REQ(1, "path", STRING),
	OPT(2, "type", STRING),
	END,
};
static const struct hf_schema host_path_volume_source = {"HostPathVolumeSource", host_path_volume_source_fields};

static const struct hf_schema_field empty_dir_volume_source_fields[] = {
	ONE(1, "medium", STRING),
	OPT(2, "sizeLimit", QUANTITY),
	END,
};
static const struct hf_schema empty_dir_volume_source = {"EmptyDirVolumeSource", empty_dir_volume_source_fields};

static const struct hf_schema_field gce_persistent_disk_volume_source_fields[] = {
	REQ(1, "pdName", STRING),
	ONE(2, "fsType", STRING),
	ONE(3, "partition", INT32),
	ONE(4, "readOnly", BOOL),
	END,
};
static const struct hf_schema gce_persistent_disk_volume_source = {"GCEPersistentDiskVolumeSource", gce_persistent_disk_volume_source_fields};

static const struct hf_schema_field aws_elastic_block_store_volume_source_fields[] = {
	REQ(1, "volumeID", STRING),
	ONE(2, "fsType", STRING),
	ONE(3, "partition", INT32),
	ONE(4, "readOnly", BOOL),
	END,
};
static const struct hf_schema aws_elastic_block_store_volume_source = {"AWSElasticBlockStoreVolumeSource", aws_elastic_block_store_volume_source_fields};

static const struct hf_schema_field git_repo_volume_source_fields[] = {
	REQ(1, "repository", STRING),
	ONE(2, "revision", STRING),
	ONE(3, "directory", STRING),
	END,
};
static const struct hf_schema git_repo_volume_source = {"GitRepoVolumeSource", git_repo_volume_source_fields};

static const struct hf_schema_field key_to_path_fields[] = {
	REQ(1, "key", STRING),
	REQ(2, "path", STRING),
	OPT(3, "mode", INT32),
	END,
};
static const struct hf_schema key_to_path = {"KeyToPath", key_to_path_fields};

static const struct hf_schema_field secret_volume_source_fields[] = {
	ONE(1, "secretName", STRING),
	LIST_OF(2, "items", key_to_path),
	OPT(3, "defaultMode", INT32),
	OPT(4, "optional", BOOL),
	END,
};
static const struct hf_schema secret_volume_source = {"SecretVolumeSource", secret_volume_source_fields};

static const struct hf_schema_field nfs_volume_source_fields[] = {
	REQ(1, "server", STRING),
	REQ(2, "path", STRING),
	ONE(3, "readOnly", BOOL),
	END,
};
static const struct hf_schema nfs_volume_source = {"NFSVolumeSource", nfs_volume_source_fields};

static const struct hf_schema_field iscsi_volume_source_fields[] = {
	REQ(1, "targetPortal", STRING),
	REQ(2, "iqn", STRING),
	REQ(3, "lun", INT32),
	ONE(4, "iscsiInterface", STRING),
	ONE(5, "fsType", STRING),
	ONE(6, "readOnly", BOOL),
	LIST(7, "portals", STRING),
	ONE(8, "chapAuthDiscovery", BOOL),
	OPT_OF(10, "secretRef", hf_schema_local_object_reference),
	ONE(11, "chapAuthSession", BOOL),
	OPT(12, "initiatorName", STRING),
	END,
};
static const struct hf_schema iscsi_volume_source = {"ISCSIVolumeSource", iscsi_volume_source_fields};

static const struct hf_schema_field glusterfs_volume_source_fields[] = {
	REQ(1, "endpoints", STRING),
	REQ(2, "path", STRING),
	ONE(3, "readOnly", BOOL),
	END,
};
static const struct hf_schema glusterfs_volume_source = {"GlusterfsVolumeSource", glusterfs_volume_source_fields};

static const struct hf_schema_field persistent_volume_claim_volume_source_fields[] = {
	REQ(1, "claimName", STRING),
	ONE(2, "readOnly", BOOL),
	END,
};
static const struct hf_schema persistent_volume_claim_volume_source = {"PersistentVolumeClaimVolumeSource", persistent_volume_claim_volume_source_fields};

static const struct hf_schema_field rbd_volume_source_fields[] = {
	LIST(1, "monitors", STRING),
	REQ(2, "image", STRING),
	ONE(3, "fsType", STRING),
	ONE(4, "pool", STRING),
	ONE(5, "user", STRING),
	ONE(6, "keyring", STRING),
	OPT_OF(7, "secretRef", hf_schema_local_object_reference),
	ONE(8, "readOnly", BOOL),
	END,
};
static const struct hf_schema rbd_volume_source = {"RBDVolumeSource", rbd_volume_source_fields};

static const struct hf_schema_field flex_volume_source_fields[] = {
	REQ(1, "driver", STRING),
	ONE(2, "fsType", STRING),
	OPT_OF(3, "secretRef", hf_schema_local_object_reference),
	ONE(4, "readOnly", BOOL),
	MAP(5, "options", STRING),
	END,
};
static const struct hf_schema flex_volume_source = {"FlexVolumeSource", flex_volume_source_fields};

static const struct hf_schema_field cinder_volume_source_fields[] = {
	REQ(1, "volumeID", STRING),
	ONE(2, "fsType", STRING),
	ONE(3, "readOnly", BOOL),
	OPT_OF(4, "secretRef", hf_schema_local_object_reference),
	END,
};
static const struct hf_schema cinder_volume_source = {"CinderVolumeSource", cinder_volume_source_fields};

static const struct hf_schema_field ceph_fs_volume_source_fields[] = {
	LIST(1, "monitors", STRING),
	ONE(2, "path", STRING),
	ONE(3, "user", STRING),
	ONE(4, "secretFile", STRING),
	OPT_OF(5, "secretRef", hf_schema_local_object_reference),
	ONE(6, "readOnly", BOOL),
	END,
};
static const struct hf_schema ceph_fs_volume_source = {"CephFSVolumeSource", ceph_fs_volume_source_fields};

static const struct hf_schema_field flocker_volume_source_fields[] = {
	ONE(1, "datasetName", STRING),
	ONE(2, "datasetUUID", STRING),
	END,
};
static const struct hf_schema flocker_volume_source = {"FlockerVolumeSource", flocker_volume_source_fields};

static const struct hf_schema_field downward_api_volume_file_fields[] = {
	REQ(1, "path", STRING),
	OPT_OF(2, "fieldRef", hf_schema_object_field_selector),
	OPT_OF(3, "resourceFieldRef", hf_schema_resource_field_selector),
	OPT(4, "mode", INT32),
	END,
};
static const struct hf_schema downward_api_volume_file = {"DownwardAPIVolumeFile", downward_api_volume_file_fields};

static const struct hf_schema_field downward_api_volume_source_fields[] = {
	LIST_OF(1, "items", downward_api_volume_file),
	OPT(2, "defaultMode", INT32),
	END,
};
static const struct hf_schema downward_api_volume_source = {"DownwardAPIVolumeSource", downward_api_volume_source_fields};

static const struct hf_schema_field fc_volume_source_fields[] = {
	LIST(1, "targetWWNs", STRING),
	OPT(2, "lun", INT32),
	ONE(3, "fsType", STRING),
	ONE(4, "readOnly", BOOL),
	LIST(5, "wwids", STRING),
	END,
};
static const struct hf_schema fc_volume_source = {"FCVolumeSource", fc_volume_source_fields};

static const struct hf_schema_field azure_file_volume_source_fields[] = {
	REQ(1, "secretName", STRING),
	REQ(2, "shareName", STRING),
	ONE(3, "readOnly", BOOL),
	END,
};
static const struct hf_schema azure_file_volume_source = {"AzureFileVolumeSource", azure_file_volume_source_fields};

static const struct hf_schema_field config_map_volume_source_fields[] = {
	INLINE_OF(1, "localObjectReference", hf_schema_local_object_reference),
	LIST_OF(2, "items", key_to_path),
	OPT(3, "defaultMode", INT32),
	OPT(4, "optional", BOOL),
	END,
};
static const struct hf_schema config_map_volume_source = {"ConfigMapVolumeSource", config_map_volume_source_fields};

static const struct hf_schema_field vsphere_virtual_disk_volume_source_fields[] = {
	REQ(1, "volumePath", STRING),
	ONE(2, "fsType", STRING),
	ONE(3, "storagePolicyName", STRING),
	ONE(4, "storagePolicyID", STRING),
	END,
};
static const struct hf_schema vsphere_virtual_disk_volume_source = {"VsphereVirtualDiskVolumeSource", vsphere_virtual_disk_volume_source_fields};

static const struct hf_schema_field quobyte_volume_source_fields[] = {
	REQ(1, "registry", STRING),
	REQ(2, "volume", STRING),
	ONE(3, "readOnly", BOOL),
	ONE(4, "user", STRING),
	ONE(5, "group", STRING),
	ONE(6, "tenant", STRING),
	END,
};
static const struct hf_schema quobyte_volume_source = {"QuobyteVolumeSource", quobyte_volume_source_fields};

static const struct hf_schema_field azure_disk_volume_source_fields[] = {
	REQ(1, "diskName", STRING),
	REQ(2, "diskURI", STRING),
	OPT(3, "cachingMode", STRING),
	OPT(4, "fsType", STRING),
	OPT(5, "readOnly", BOOL),
	OPT(6, "kind", STRING),
	END,
};
static const struct hf_schema azure_disk_volume_source = {"AzureDiskVolumeSource", azure_disk_volume_source_fields};

static const struct hf_schema_field photon_persistent_disk_volume_source_fields[] = {
	REQ(1, "pdID", STRING),
	ONE(2, "fsType", STRING),
	END,
};
static const struct hf_schema photon_persistent_disk_volume_source = {"PhotonPersistentDiskVolumeSource", photon_persistent_disk_volume_source_fields};

static const struct hf_schema_field secret_projection_fields[] = {
	INLINE_OF(1, "localObjectReference", hf_schema_local_object_reference),
	LIST_OF(2, "items", key_to_path),
	OPT(4, "optional", BOOL),
	END,
};
static const struct hf_schema secret_projection = {"SecretProjection", secret_projection_fields};

static const struct hf_schema_field downward_api_projection_fields[] = {
	LIST_OF(1, "items", downward_api_volume_file),
	END,
};
static const struct hf_schema downward_api_projection = {"DownwardAPIProjection", downward_api_projection_fields};

static const struct hf_schema_field config_map_projection_fields[] = {
	INLINE_OF(1, "localObjectReference", hf_schema_local_object_reference),
	LIST_OF(2, "items", key_to_path),
	OPT(4, "optional", BOOL),
	END,
};
static const struct hf_schema config_map_projection = {"ConfigMapProjection", config_map_projection_fields};

static const struct hf_schema_field service_account_token_projection_fields[] = {
	ONE(1, "audience", STRING),
	OPT(2, "expirationSeconds", INT64),
	REQ(3, "path", STRING),
	END,
};
static const struct hf_schema service_account_token_projection = {"ServiceAccountTokenProjection", service_account_token_projection_fields};

static const struct hf_schema_field cluster_trust_bundle_projection_fields[] = {
	OPT(1, "name", STRING),
	OPT(2, "signerName", STRING),
	OPT_OF(3, "labelSelector", hf_schema_label_selector),
	REQ(4, "path", STRING),
	OPT(5, "optional", BOOL),
	END,
};
static const struct hf_schema cluster_trust_bundle_projection = {"ClusterTrustBundleProjection", cluster_trust_bundle_projection_fields};

static const struct hf_schema_field pod_certificate_projection_fields[] = {
	ONE(1, "signerName", STRING),
	ONE(2, "keyType", STRING),
	OPT(3, "maxExpirationSeconds", INT32),
	ONE(4, "credentialBundlePath", STRING),
	ONE(5, "keyPath", STRING),
	ONE(6, "certificateChainPath", STRING),
	MAP(7, "userAnnotations", STRING),
	END,
};
static const struct hf_schema pod_certificate_projection = {"PodCertificateProjection", pod_certificate_projection_fields};

static const struct hf_schema_field volume_projection_fields[] = {
	OPT_OF(1, "secret", secret_projection),
	OPT_OF(2, "downwardAPI", downward_api_projection),
	OPT_OF(3, "configMap", config_map_projection),
	OPT_OF(4, "serviceAccountToken", service_account_token_projection),
	OPT_OF(5, "clusterTrustBundle", cluster_trust_bundle_projection),
	OPT_OF(6, "podCertificate", pod_certificate_projection),
	END,
};
static const struct hf_schema volume_projection = {"VolumeProjection", volume_projection_fields};

static const struct hf_schema_field projected_volume_source_fields[] = {
	LIST_OF(1, "sources", volume_projection),
	OPT(2, "defaultMode", INT32),
	END,
};
static const struct hf_schema projected_volume_source = {"ProjectedVolumeSource", projected_volume_source_fields};

static const struct hf_schema_field portworx_volume_source_fields[] = {
	REQ(1, "volumeID", STRING),
	ONE(2, "fsType", STRING),
	ONE(3, "readOnly", BOOL),
	END,
};
static const struct hf_schema portworx_volume_source = {"PortworxVolumeSource", portworx_volume_source_fields};

static const struct hf_schema_field scale_io_volume_source_fields[] = {
	REQ(1, "gateway", STRING),
	REQ(2, "system", STRING),
	OPT_OF(3, "secretRef", hf_schema_local_object_reference),
	ONE(4, "sslEnabled", BOOL),
	ONE(5, "protectionDomain", STRING),
	ONE(6, "storagePool", STRING),
	ONE(7, "storageMode", STRING),
	ONE(8, "volumeName", STRING),
	ONE(9, "fsType", STRING),
	ONE(10, "readOnly", BOOL),
	END,
};
static const struct hf_schema scale_io_volume_source = {"ScaleIOVolumeSource", scale_io_volume_source_fields};

static const struct hf_schema_field storage_os_volume_source_fields[] = {
	ONE(1, "volumeName", STRING),
	ONE(2, "volumeNamespace", STRING),
	ONE(3, "fsType", STRING),
	ONE(4, "readOnly", BOOL),
	OPT_OF(5, "secretRef", hf_schema_local_object_reference),
	END,
};
static const struct hf_schema storage_os_volume_source = {"StorageOSVolumeSource", storage_os_volume_source_fields};

static const struct hf_schema_field csi_volume_source_fields[] = {
	REQ(1, "driver", STRING),
	OPT(2, "readOnly", BOOL),
	OPT(3, "fsType", STRING),
	MAP(4, "volumeAttributes", STRING),
	OPT_OF(5, "nodePublishSecretRef", hf_schema_local_object_reference),
	END,
};
static const struct hf_schema csi_volume_source = {"CSIVolumeSource", csi_volume_source_fields};

static const struct hf_schema_field volume_resource_requirements_fields[] = {
	MAP(1, "limits", QUANTITY),
	MAP(2, "requests", QUANTITY),
	END,
};
static const struct hf_schema volume_resource_requirements = {"VolumeResourceRequirements", volume_resource_requirements_fields};

static const struct hf_schema_field typed_object_reference_fields[] = {
	OPT(1, "apiGroup", STRING),
	REQ(2, "kind", STRING),
	REQ(3, "name", STRING),
	OPT(4, "namespace", STRING),
	END,
};
static const struct hf_schema typed_object_reference = {"TypedObjectReference", typed_object_reference_fields};

static const struct hf_schema_field persistent_volume_claim_spec_fields[] = {
	LIST(1, "accessModes", STRING),
	ONE_OF(2, "resources", volume_resource_requirements),
	ONE(3, "volumeName", STRING),
	OPT_OF(4, "selector", hf_schema_label_selector),
	OPT(5, "storageClassName", STRING),
	OPT(6, "volumeMode", STRING),
	OPT_OF(7, "dataSource", hf_schema_typed_local_object_reference),
	OPT_OF(8, "dataSourceRef", typed_object_reference),
	OPT(9, "volumeAttributesClassName", STRING),
	END,
};
const struct hf_schema hf_schema_persistent_volume_claim_spec = {"PersistentVolumeClaimSpec", persistent_volume_claim_spec_fields};

static const struct hf_schema_field persistent_volume_claim_template_fields[] = {
	ONE_OF(1, "metadata", hf_schema_object_meta),
	ONE_OF(2, "spec", hf_schema_persistent_volume_claim_spec),
	END,
};
static const struct hf_schema persistent_volume_claim_template = {"PersistentVolumeClaimTemplate", persistent_volume_claim_template_fields};

static const struct hf_schema_field ephemeral_volume_source_fields[] = {
	OPT_OF(1, "volumeClaimTemplate", persistent_volume_claim_template),
	END,
};
static const struct hf_schema ephemeral_volume_source = {"EphemeralVolumeSource", ephemeral_volume_source_fields};

static const struct hf_schema_field image_volume_source_fields[] = {
	ONE(1, "reference", STRING),
	ONE(2, "pullPolicy", STRING),
	END,
};
static const struct hf_schema image_volume_source = {"ImageVolumeSource", image_volume_source_fields};

static const struct hf_schema_field volume_source_fields[] = {
	OPT_OF(1, "hostPath", host_path_volume_source),
	OPT_OF(2, "emptyDir", empty_dir_volume_source),
	OPT_OF(3, "gcePersistentDisk", gce_persistent_disk_volume_source),
	OPT_OF(4, "awsElasticBlockStore", aws_elastic_block_store_volume_source),
	OPT_OF(5, "gitRepo", git_repo_volume_source),
	OPT_OF(6, "secret", secret_volume_source),
	OPT_OF(7, "nfs", nfs_volume_source),
	OPT_OF(8, "iscsi", iscsi_volume_source),
	OPT_OF(9, "glusterfs", glusterfs_volume_source),
	OPT_OF(10, "persistentVolumeClaim", persistent_volume_claim_volume_source),
	OPT_OF(11, "rbd", rbd_volume_source),
	OPT_OF(12, "flexVolume", flex_volume_source),
	OPT_OF(13, "cinder", cinder_volume_source),
	OPT_OF(14, "cephfs", ceph_fs_volume_source),
	OPT_OF(15, "flocker", flocker_volume_source),
	OPT_OF(16, "downwardAPI", downward_api_volume_source),
	OPT_OF(17, "fc", fc_volume_source),
	OPT_OF(18, "azureFile", azure_file_volume_source),
	OPT_OF(19, "configMap", config_map_volume_source),
	OPT_OF(20, "vsphereVolume", vsphere_virtual_disk_volume_source),
	OPT_OF(21, "quobyte", quobyte_volume_source),
	OPT_OF(22, "azureDisk", azure_disk_volume_source),
	OPT_OF(23, "photonPersistentDisk", photon_persistent_disk_volume_source),
	OPT_OF(24, "portworxVolume", portworx_volume_source),
	OPT_OF(25, "scaleIO", scale_io_volume_source),
	OPT_OF(26, "projected", projected_volume_source),
	OPT_OF(27, "storageos", storage_os_volume_source),
	OPT_OF(28, "csi", csi_volume_source),
	OPT_OF(29, "ephemeral", ephemeral_volume_source),
	OPT_OF(30, "image", image_volume_source),
	END,
};
static const struct hf_schema volume_source = {"VolumeSource", volume_source_fields};

static const struct hf_schema_field volume_fields[] = {
	REQ(1, "name", STRING),
	INLINE_OF(2, "volumeSource", volume_source),
	END,
};
const struct hf_schema hf_schema_volume = {"Volume", volume_fields};

static const struct hf_schema_field persistent_volume_claim_condition_fields[] = {
	REQ(1, "type", STRING),
	REQ(2, "status", STRING),
	ONE(3, "lastProbeTime", TIME),
	ONE(4, "lastTransitionTime", TIME),
	ONE(5, "reason", STRING),
	ONE(6, "message", STRING),
	END,
};
static const struct hf_schema persistent_volume_claim_condition = {"PersistentVolumeClaimCondition", persistent_volume_claim_condition_fields};

static const struct hf_schema_field modify_volume_status_fields[] = {
	ONE(1, "targetVolumeAttributesClassName", STRING),
	REQ(2, "status", STRING),
	END,
};
static const struct hf_schema modify_volume_status = {"ModifyVolumeStatus", modify_volume_status_fields};

static const struct hf_schema_field persistent_volume_claim_status_fields[] = {
	ONE(1, "phase", STRING),
	LIST(2, "accessModes", STRING),
	MAP(3, "capacity", QUANTITY),
	LIST_OF(4, "conditions", persistent_volume_claim_condition),
	MAP(5, "allocatedResources", QUANTITY),
	MAP(7, "allocatedResourceStatuses", STRING),
	OPT(8, "currentVolumeAttributesClassName", STRING),
	OPT_OF(9, "modifyVolumeStatus", modify_volume_status),
	END,
};
const struct hf_schema hf_schema_persistent_volume_claim_status = {"PersistentVolumeClaimStatus", persistent_volume_claim_status_fields};

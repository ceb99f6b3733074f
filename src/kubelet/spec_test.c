/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */
#include "harness/node.h"

#include "base/mem.h"
#include "base/str.h"
#include "kubelet/runtime/shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Tests what a pod may ask for, as seen from inside the pod. */

#define STR(json, ...) hf_json_path_str((json), __VA_ARGS__, NULL)

static bool needs_mounts(const struct testnode *n)
{
	if (!n->facts.pod_network)
		(void)fprintf(stderr, "# SKIPPED: this machine refuses namespaces\n");
	return n->facts.pod_network;
}

static void environment_and_arguments_are_expanded(void **state)
{
	struct testnode *n = *state;

	testnode_create(n, &hf_configmaps,
			"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':"
			"'settings'},'data':{'LR':'0.1'}}");
	testnode_create(n, &hf_secrets,
			"{'apiVersion':'v1','kind':'Secret','metadata':{'name':'s'},"
			"'data':{'token':'c2VjcmV0'}}");
	testnode_pod(
		n, "a",
		"'restartPolicy':'Never','containers':[{'name':'main','envFrom':["
		"{'configMapRef':{'name':'settings'}}],'env':[{'name':'NAME','valueFrom':{"
		"'fieldRef':{'fieldPath':'metadata.name'}}},{'name':'IP','valueFrom':{'fieldRef':"
		"{'fieldPath':'status.podIP'}}},{'name':'T','valueFrom':{'secretKeyRef':{'name':"
		"'s','key':'token'}}}],'command':['sh','-c','echo $0 $1 $LR; test -n $IP; echo "
		"$HOSTNAME; test -z $SECRET_OF_THE_PLANE && echo clean'],'args':['$(NAME)',"
		"'$(T)']}]");
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_assert_output(n, "a", "a secret 0.1\na\nclean\n");
}

static void a_missing_config_map_is_named_and_waited_for(void **state)
{
	struct testnode *n = *state;
	const struct hf_json *c;

	testnode_pod(n, "a",
		     "'restartPolicy':'Never','containers':[{'name':'main','env':[{'name':"
		     "'X','valueFrom':{'configMapKeyRef':{'name':'late','key':'x'}}}],'command':["
		     "'sh','-c','echo $X']}]");
	testnode_wait_state(n, "a", "waiting", "CreateContainerConfigError");
	c = testnode_container(n, "a", 0, false);
	assert_string_equal(STR(c, "state", "waiting", "message"), "configmaps \"late\" not found");
	assert_string_equal(STR(testnode_status(n, "a"), "phase"), "Pending");
	assert_int_equal(testnode_events(n, "a", "Failed"), 1);
	testnode_create(n, &hf_configmaps,
			"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':"
			"'late'},'data':{'x':'there'}}");
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_assert_output(n, "a", "there\n");
}

static void what_is_not_done_is_refused_before_anything_runs(void **state)
{
	struct testnode *n = *state;
	static const char *const specs[][2] = {
		{"'containers':[{'name':'main','image':'x'}]",
		 "spec.containers[0].command is needed"},
		{"'runtimeClassName':'x','containers':[{'name':'main','command':['true']}]",
		 "spec.runtimeClassName is not supported"},
		{"'volumes':[{'name':'v','emptyDir':{'medium':'HugePages'}}],'containers':["
		 "{'name':'main','command':['true']}]",
		 "spec.volumes[0].emptyDir.medium is not supported"},
		{"'containers':[{'name':'main','command':['true'],'volumeMounts':[{'name':'v',"
		 "'mountPath':'/v'}]}]",
		 "volumeMounts names no volume 'v'"},
	};

	for (size_t i = 0; i < HF_ARRAY_LEN(specs); i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "p%zu", i);
		testnode_pod(n, name, "%s", specs[i][0]);
		testnode_wait_state(n, name, "waiting", "CreateContainerConfigError");
		assert_true(hf_str_has_prefix(
			STR(testnode_container(n, name, 0, false), "state", "waiting", "message"),
			specs[i][1]));
		assert_string_equal(STR(testnode_status(n, name), "phase"), "Pending");
		testnode_delete(n, name, HF_GRACE_DEFAULT);
		testnode_wait_gone(n, name);
	}
}

/* stdin is /dev/null, so a program that reads stdin gets the end of file at once. */
static void an_ignored_field_has_one_event_and_the_pod_runs(void **state)
{
	struct testnode *n = *state;

	testnode_pod(n, "a",
		     "'restartPolicy':'Never','containers':[{'name':'main','tty':true,'stdin':true,"
		     "'command':['sh','-c','cat; test -t 0 || echo no terminal']}]");
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_assert_output(n, "a", "no terminal\n");
	assert_int_equal(testnode_events(n, "a", "FieldIgnored"), 2);
}

static void volumes_have_what_their_sources_say(void **state)
{
	struct testnode *n = *state;
	HF_AUTOFREE char *host = hf_xasprintf("%s/host", n->dir);

	if (!needs_mounts(n))
		return;
	testnode_create(n, &hf_configmaps,
			"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':"
			"'files'},'data':{'one':'1','two':'2'},'binaryData':{'bin':'AAEC'}}");
	testnode_create(n, &hf_secrets,
			"{'apiVersion':'v1','kind':'Secret','metadata':{'name':'s'},"
			"'data':{'token':'c2VjcmV0'}}");
	testnode_pod(
		n, "a",
		"'restartPolicy':'Never','volumes':["
		"{'name':'all','configMap':{'name':'files'}},"
		"{'name':'some','configMap':{'name':'files','items':[{'key':'two','path':'sub/deep'"
		",'mode':256}]}},"
		"{'name':'secret','secret':{'secretName':'s','defaultMode':384}},"
		"{'name':'down','downwardAPI':{'items':[{'path':'labels','fieldRef':{'fieldPath':"
		"'metadata.labels'}},{'path':'name','fieldRef':{'fieldPath':'metadata.name'}}]}},"
		"{'name':'both','projected':{'sources':[{'configMap':{'name':'files','items':[{'key'"
		":'one','path':'c'}]}},{'secret':{'name':'s'}}]}},"
		"{'name':'maybe','configMap':{'name':'gone','optional':true}},"
		"{'name':'empty','emptyDir':{}},"
		"{'name':'host','hostPath':{'path':'%s','type':'DirectoryOrCreate'}}],"
		"'containers':[{'name':'main','volumeMounts':["
		"{'name':'all','mountPath':'/hf/all'},{'name':'some','mountPath':'/hf/some'},"
		"{'name':'secret','mountPath':'/hf/secret'},{'name':'down','mountPath':'/hf/down'},"
		"{'name':'both','mountPath':'/hf/both'},{'name':'maybe','mountPath':'/hf/maybe'},"
		"{'name':'empty','mountPath':'/hf/empty'},{'name':'host','mountPath':'/hf/host'},"
		"{'name':'empty','mountPath':'/hf/sub','subPath':'x/y'}],"
		"'command':['sh','-c','cd /hf; cat all/one all/two some/sub/deep; stat -c %%a "
		"some/sub/deep secret/token; cat secret/token; echo; cat down/labels; echo; cat "
		"down/name; echo; cat both/c both/token; echo; ls maybe; wc -c < all/bin; "
		"(echo x > all/no) 2>/dev/null || echo read-only; echo y > sub/z; "
		"cat empty/x/y/z; echo kept > host/file']}]",
		host);
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_assert_output(n, "a",
			       "122400\n600\nsecret\napp=\"a\"\na\n1secret\n3\nread-only\ny\n");
}

static void memory_volumes_take_the_place_of_the_shared_memory(void **state)
{
	struct testnode *n = *state;

	if (!needs_mounts(n))
		return;
	testnode_pod(
		n, "a",
		"'restartPolicy':'Never','volumes':[{'name':'dshm','emptyDir':{'medium':"
		"'Memory','sizeLimit':'2Mi'}}],'containers':[{'name':'main','volumeMounts':[{'name'"
		":'dshm','mountPath':'/dev/shm'}],'command':['sh','-c','df -k --output=size "
		"/dev/shm | tail -1 | tr -d [:blank:]']}]");
	/* Each pod has its own /dev/shm, even without a volume. */
	testnode_script(n, "b", "Never", "ls /dev/shm | wc -l; echo x > /dev/shm/hf-left-behind");
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_assert_output(n, "a", "2048\n");
	testnode_wait_phase(n, "b", "Succeeded");
	testnode_assert_output(n, "b", "0\n");
	assert_int_equal(access("/dev/shm/hf-left-behind", F_OK), -1);
}

static bool waits_for_claim(struct testnode *n, void *arg HF_UNUSED)
{
	return hf_streq(STR(testnode_container(n, "a", 0, false), "state", "waiting", "message"),
			"volume 'v': persistentvolumeclaim \"data\" not found");
}

static void a_claim_is_a_folder_that_outlives_the_pod(void **state)
{
	struct testnode *n = *state;
	static const char spec[] =
		"'restartPolicy':'Never','volumes':[{'name':'v','persistentVolumeClaim':{"
		"'claimName':'data'}}],'containers':[{'name':'main','volumeMounts':[{'name':'v',"
		"'mountPath':'/hf-data'}],'command':['sh','-c','cat /hf-data/x 2>/dev/null || echo fresh; echo "
		"kept > /hf-data/x']}]";
	const struct hf_json *claim;

	if (!needs_mounts(n))
		return;
	/* The claim does not exist, so the pod waits for it. */
	testnode_pod(n, "a", "%s", spec);
	testnode_wait(n, waits_for_claim, NULL);
	testnode_create(n, &hf_persistentvolumeclaims,
			"{'apiVersion':'v1','kind':'PersistentVolumeClaim','metadata':{'name':"
			"'data'},'spec':{'accessModes':['ReadWriteOnce'],'resources':{'requests':{"
			"'storage':'5Gi'}}}}");
	claim = hf_doc_json(
		hf_memstore_peek(n->memstore, &hf_persistentvolumeclaims, "default", "data"));
	assert_string_equal(STR(claim, "status", "phase"), "Bound");
	assert_string_equal(STR(claim, "status", "capacity", "storage"), "5Gi");
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_assert_output(n, "a", "fresh\n");
	testnode_delete(n, "a", HF_GRACE_DEFAULT);
	testnode_wait_gone(n, "a");
	testnode_pod(n, "b", "%s", spec);
	testnode_wait_phase(n, "b", "Succeeded");
	testnode_assert_output(n, "b", "kept\n");
}

static void host_paths_are_checked_as_their_type_says(void **state)
{
	struct testnode *n = *state;

	testnode_pod(n, "a",
		     "'volumes':[{'name':'v','hostPath':{'path':'/etc/passwd','type':"
		     "'Directory'}}],'containers':[{'name':'main','command':['true']}]");
	testnode_wait_state(n, "a", "waiting", "CreateContainerConfigError");
	assert_string_equal(
		STR(testnode_container(n, "a", 0, false), "state", "waiting", "message"),
		"volume 'v': hostPath type check failed: /etc/passwd is not a Directory");
}

static void paths_do_not_leave_their_volume(void **state)
{
	struct testnode *n = *state;
	static const char *const specs[] = {
		"'volumes':[{'name':'v','configMap':{'name':'c','items':[{'key':'k','path':"
		"'../../../x'}]}}],'containers':[{'name':'main','command':['true']}]",
		"'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':'main','volumeMounts':[{"
		"'name':'v','mountPath':'/v','subPath':'a/../../b'}],'command':['true']}]",
		"'volumes':[{'name':'../v','emptyDir':{}}],'containers':[{'name':'main','command':["
		"'true']}]",
	};

	testnode_create(n, &hf_configmaps,
			"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':"
			"'c'},'data':{'k':'1'}}");
	for (size_t i = 0; i < HF_ARRAY_LEN(specs); i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "p%zu", i);
		testnode_pod(n, name, "%s", specs[i]);
		testnode_wait_state(n, name, "waiting", "CreateContainerConfigError");
	}
}

static void a_termination_message_is_taken_from_its_file(void **state)
{
	struct testnode *n = *state;

	if (!needs_mounts(n))
		return;
	testnode_script(n, "a", "Never", "printf because > /dev/termination-log; exit 1");
	testnode_pod(n, "b",
		     "'restartPolicy':'Never','containers':[{'name':'main','terminationMessage"
		     "Path':'/tmp/hf-why','command':['sh','-c','echo well > /tmp/hf-why']}]");
	testnode_pod(
		n, "c",
		"'restartPolicy':'Never','containers':[{'name':'main','terminationMessage"
		"Policy':'FallbackToLogsOnError','command':['sh','-c','echo one; echo two; exit "
		"2']}]");
	testnode_wait_phase(n, "a", "Failed");
	assert_string_equal(
		STR(testnode_container(n, "a", 0, false), "state", "terminated", "message"),
		"because");
	assert_int_equal(access("/dev/termination-log", F_OK), -1);
	testnode_wait_phase(n, "b", "Succeeded");
	assert_string_equal(
		STR(testnode_container(n, "b", 0, false), "state", "terminated", "message"),
		"well\n");
	testnode_wait_phase(n, "c", "Failed");
	assert_string_equal(
		STR(testnode_container(n, "c", 0, false), "state", "terminated", "message"),
		"one\ntwo\n");
}

static void root_runs_containers_as_the_user_of_their_spec(void **state)
{
	struct testnode *n = *state;

	if (geteuid() != 0) {
		(void)fprintf(stderr, "# SKIPPED: needs root\n");
		return;
	}
	if (!needs_mounts(n))
		return;
	testnode_pod(
		n, "a",
		"'restartPolicy':'Never','securityContext':{'runAsUser':1234,'runAsGroup':"
		"2345,'fsGroup':3456},'volumes':[{'name':'v','emptyDir':{}}],'containers':[{'name':"
		"'main','volumeMounts':[{'name':'v','mountPath':'/hf-v'}],'command':['sh','-c',"
		"'id -u; id -g; id -G; echo x > /hf-v/x && echo writable; echo $HOME']}]");
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_assert_output(n, "a", "1234\n2345\n2345 3456\nwritable\n/\n");
}

static void a_working_directory_and_aliases_are_kept(void **state)
{
	struct testnode *n = *state;

	testnode_pod(n, "a",
		     "'restartPolicy':'Never','containers':[{'name':'main','workingDir':'/usr',"
		     "'command':['pwd']}]");
	testnode_wait_phase(n, "a", "Succeeded");
	testnode_assert_output(n, "a", "/usr\n");
	if (!needs_mounts(n))
		return;
	testnode_pod(
		n, "b",
		"'restartPolicy':'Never','hostname':'renamed','hostAliases':[{'ip':"
		"'10.9.9.9','hostnames':['far','away']}],'containers':[{'name':'main','command':["
		"'sh','-c','getent ahostsv4 away | head -1 | cut -d\\\\  -f1; uname -n']}]");
	testnode_wait_phase(n, "b", "Succeeded");
	testnode_assert_output(n, "b", "10.9.9.9\nrenamed\n");
}

static void without_mounts_only_what_is_in_place_can_be_had(void **state)
{
	struct testnode *n = *state;

	testnode_pod(
		n, "a",
		"'restartPolicy':'Never','volumes':[{'name':'v','emptyDir':{}}],"
		"'containers':[{'name':'main','volumeMounts':[{'name':'v','mountPath':'/hf-v'}],"
		"'command':['true']}]");
	testnode_wait_state(n, "a", "waiting", "CreateContainerConfigError");
	assert_string_equal(
		STR(testnode_container(n, "a", 0, false), "state", "waiting", "message"),
		"spec.containers[0].volumeMounts[0].mountPath is not supported: pods have no mount "
		"namespaces on this machine (the option for the machine's network is set); only a "
		"hostPath that is mounted at its own path works here");
	testnode_pod(
		n, "b",
		"'restartPolicy':'Never','volumes':[{'name':'v','hostPath':{'path':"
		"'/tmp'}},{'name':'shm','emptyDir':{'medium':'Memory'}}],'containers':[{'name':"
		"'main','volumeMounts':[{'name':'v','mountPath':'/tmp'},{'name':'shm','mountPath':"
		"'/dev/shm'}],'command':['true']}]");
	testnode_wait_phase(n, "b", "Succeeded");
}

int main(int argc, char **argv)
{
#define T(name) TESTNODE_TEST(name, memory)
#define H(name) TESTNODE_HOST_TEST(name, memory)
	const struct CMUnitTest tests[] = {
		T(environment_and_arguments_are_expanded),
		T(a_missing_config_map_is_named_and_waited_for),
		T(what_is_not_done_is_refused_before_anything_runs),
		T(an_ignored_field_has_one_event_and_the_pod_runs),
		T(volumes_have_what_their_sources_say),
		T(memory_volumes_take_the_place_of_the_shared_memory),
		T(a_claim_is_a_folder_that_outlives_the_pod),
		T(host_paths_are_checked_as_their_type_says),
		T(paths_do_not_leave_their_volume),
		T(a_termination_message_is_taken_from_its_file),
		T(root_runs_containers_as_the_user_of_their_spec),
		T(a_working_directory_and_aliases_are_kept),
		H(environment_and_arguments_are_expanded),
		H(without_mounts_only_what_is_in_place_can_be_had),
	};
	int rc = hf_shim_helper_main(argc, argv);

	if (rc < 0 && setenv("SECRET_OF_THE_PLANE", "x", 1) != 0)
		return 1;
	return rc >= 0 ? rc : cmocka_run_group_tests(tests, NULL, NULL);
}

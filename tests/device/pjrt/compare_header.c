/* Our declarations of PJRT next to the published ones: sizes and offsets, which the compiler compares. `./dev
 * pjrt-header` compiles this against the header in TensorFlow's wheel; nothing else does.
 */
#include "device/pjrt/interface.h"
#include "xla/pjrt/c/pjrt_c_api.h"

#define SAME_FIELD(ours, field, theirs, their_field)                                                                   \
    _Static_assert(offsetof(ours, field) == offsetof(theirs, their_field) &&                                           \
                       sizeof(((ours *)0)->field) == sizeof(((theirs *)0)->their_field),                               \
                   #ours "." #field)
#define SAME_SLOT(slot_number, function)                                                                               \
    _Static_assert(offsetof(pjrt_api, slot) + (slot_number) * sizeof(pjrt_function) == offsetof(PJRT_Api, function),   \
                   #function)
/* Ours may be longer: what follows is zero. */
#define LONG_ENOUGH(ours, theirs) _Static_assert(sizeof(ours) >= sizeof(theirs), #ours " is too short")

SAME_FIELD(pjrt_api, version, PJRT_Api, pjrt_api_version);
SAME_FIELD(pjrt_version, major, PJRT_Api_Version, major_version);
SAME_FIELD(pjrt_version, minor, PJRT_Api_Version, minor_version);

SAME_SLOT(PJRT_ERROR_DESTROY, PJRT_Error_Destroy);
SAME_SLOT(PJRT_ERROR_MESSAGE, PJRT_Error_Message);
SAME_SLOT(PJRT_ERROR_GET_CODE, PJRT_Error_GetCode);
SAME_SLOT(PJRT_PLUGIN_INITIALIZE, PJRT_Plugin_Initialize);
SAME_SLOT(PJRT_EVENT_DESTROY, PJRT_Event_Destroy);
SAME_SLOT(PJRT_EVENT_IS_READY, PJRT_Event_IsReady);
SAME_SLOT(PJRT_EVENT_AWAIT, PJRT_Event_Await);
SAME_SLOT(PJRT_CLIENT_CREATE, PJRT_Client_Create);
SAME_SLOT(PJRT_CLIENT_DESTROY, PJRT_Client_Destroy);
SAME_SLOT(PJRT_CLIENT_PLATFORM_NAME, PJRT_Client_PlatformName);
SAME_SLOT(PJRT_CLIENT_PLATFORM_VERSION, PJRT_Client_PlatformVersion);
SAME_SLOT(PJRT_CLIENT_DEVICES, PJRT_Client_Devices);
SAME_SLOT(PJRT_CLIENT_ADDRESSABLE_DEVICES, PJRT_Client_AddressableDevices);
SAME_SLOT(PJRT_CLIENT_COMPILE, PJRT_Client_Compile);
SAME_SLOT(PJRT_CLIENT_BUFFER_FROM_HOST, PJRT_Client_BufferFromHostBuffer);
SAME_SLOT(PJRT_DESCRIPTION_ID, PJRT_DeviceDescription_Id);
SAME_SLOT(PJRT_DESCRIPTION_KIND, PJRT_DeviceDescription_Kind);
SAME_SLOT(PJRT_DEVICE_GET_DESCRIPTION, PJRT_Device_GetDescription);
SAME_SLOT(PJRT_DEVICE_MEMORY_STATS, PJRT_Device_MemoryStats);
SAME_SLOT(PJRT_EXECUTABLE_DESTROY, PJRT_LoadedExecutable_Destroy);
SAME_SLOT(PJRT_EXECUTABLE_EXECUTE, PJRT_LoadedExecutable_Execute);
SAME_SLOT(PJRT_BUFFER_DESTROY, PJRT_Buffer_Destroy);
SAME_SLOT(PJRT_BUFFER_TO_HOST, PJRT_Buffer_ToHostBuffer);

SAME_FIELD(pjrt_error_args, error, PJRT_Error_Destroy_Args, error);
SAME_FIELD(pjrt_message_args, error, PJRT_Error_Message_Args, error);
SAME_FIELD(pjrt_message_args, text, PJRT_Error_Message_Args, message);
SAME_FIELD(pjrt_message_args, n, PJRT_Error_Message_Args, message_size);
SAME_FIELD(pjrt_code_args, code, PJRT_Error_GetCode_Args, code);
LONG_ENOUGH(pjrt_initialize_args, PJRT_Plugin_Initialize_Args);
SAME_FIELD(pjrt_event_args, event, PJRT_Event_Await_Args, event);
SAME_FIELD(pjrt_event_args, event, PJRT_Event_Destroy_Args, event);
SAME_FIELD(pjrt_is_ready_args, is_ready, PJRT_Event_IsReady_Args, is_ready);

SAME_FIELD(pjrt_client_create_args, option, PJRT_Client_Create_Args, create_options);
SAME_FIELD(pjrt_client_create_args, get, PJRT_Client_Create_Args, kv_get_callback);
SAME_FIELD(pjrt_client_create_args, put, PJRT_Client_Create_Args, kv_put_callback);
SAME_FIELD(pjrt_client_create_args, put_user, PJRT_Client_Create_Args, kv_put_user_arg);
SAME_FIELD(pjrt_client_create_args, client, PJRT_Client_Create_Args, client);
SAME_FIELD(pjrt_client_create_args, try_get, PJRT_Client_Create_Args, kv_try_get_callback);
SAME_FIELD(pjrt_client_create_args, try_get_user, PJRT_Client_Create_Args, kv_try_get_user_arg);
LONG_ENOUGH(pjrt_client_create_args, PJRT_Client_Create_Args);
SAME_FIELD(pjrt_get_args, key, PJRT_KeyValueGetCallback_Args, key);
SAME_FIELD(pjrt_get_args, timeout_ms, PJRT_KeyValueGetCallback_Args, timeout_in_ms);
SAME_FIELD(pjrt_get_args, error, PJRT_KeyValueGetCallback_Args, callback_error);
SAME_FIELD(pjrt_get_args, user, PJRT_KeyValueGetCallback_Args, user_arg);
SAME_FIELD(pjrt_get_args, value, PJRT_KeyValueGetCallback_Args, value);
SAME_FIELD(pjrt_get_args, value_bytes, PJRT_KeyValueGetCallback_Args, value_size);
SAME_FIELD(pjrt_get_args, free_value, PJRT_KeyValueGetCallback_Args, value_deleter_callback);
SAME_FIELD(pjrt_try_get_args, error, PJRT_KeyValueTryGetCallback_Args, callback_error);
SAME_FIELD(pjrt_try_get_args, user, PJRT_KeyValueTryGetCallback_Args, user_arg);
SAME_FIELD(pjrt_try_get_args, value_bytes, PJRT_KeyValueTryGetCallback_Args, value_size);
SAME_FIELD(pjrt_try_get_args, free_value, PJRT_KeyValueTryGetCallback_Args, value_deleter_callback);
SAME_FIELD(pjrt_put_args, key_bytes, PJRT_KeyValuePutCallback_Args, key_size);
SAME_FIELD(pjrt_put_args, value, PJRT_KeyValuePutCallback_Args, value);
SAME_FIELD(pjrt_put_args, error, PJRT_KeyValuePutCallback_Args, callback_error);
SAME_FIELD(pjrt_put_args, user, PJRT_KeyValuePutCallback_Args, user_arg);
SAME_FIELD(pjrt_client_args, client, PJRT_Client_Destroy_Args, client);
SAME_FIELD(pjrt_text_args, text, PJRT_Client_PlatformName_Args, platform_name);
SAME_FIELD(pjrt_text_args, n, PJRT_Client_PlatformVersion_Args, platform_version_size);
SAME_FIELD(pjrt_text_args, n, PJRT_DeviceDescription_Kind_Args, device_kind_size);
SAME_FIELD(pjrt_chips_args, chip, PJRT_Client_AddressableDevices_Args, addressable_devices);
SAME_FIELD(pjrt_chips_args, n, PJRT_Client_AddressableDevices_Args, num_addressable_devices);
SAME_FIELD(pjrt_description_args, about, PJRT_Device_GetDescription_Args, device_description);
SAME_FIELD(pjrt_id_args, id, PJRT_DeviceDescription_Id_Args, id);

SAME_FIELD(pjrt_memory_args, used, PJRT_Device_MemoryStats_Args, bytes_in_use);
SAME_FIELD(pjrt_memory_args, limit, PJRT_Device_MemoryStats_Args, bytes_limit);
SAME_FIELD(pjrt_memory_args, has_limit, PJRT_Device_MemoryStats_Args, bytes_limit_is_set);
LONG_ENOUGH(pjrt_memory_args, PJRT_Device_MemoryStats_Args);

SAME_FIELD(pjrt_program, code, PJRT_Program, code);
SAME_FIELD(pjrt_program, format_bytes, PJRT_Program, format_size);
LONG_ENOUGH(pjrt_program, PJRT_Program);
SAME_FIELD(pjrt_compile_args, program, PJRT_Client_Compile_Args, program);
SAME_FIELD(pjrt_compile_args, options_bytes, PJRT_Client_Compile_Args, compile_options_size);
SAME_FIELD(pjrt_compile_args, executable, PJRT_Client_Compile_Args, executable);
LONG_ENOUGH(pjrt_compile_args, PJRT_Client_Compile_Args);

SAME_FIELD(pjrt_from_host_args, data, PJRT_Client_BufferFromHostBuffer_Args, data);
SAME_FIELD(pjrt_from_host_args, type, PJRT_Client_BufferFromHostBuffer_Args, type);
SAME_FIELD(pjrt_from_host_args, dim, PJRT_Client_BufferFromHostBuffer_Args, dims);
SAME_FIELD(pjrt_from_host_args, semantics, PJRT_Client_BufferFromHostBuffer_Args, host_buffer_semantics);
SAME_FIELD(pjrt_from_host_args, chip, PJRT_Client_BufferFromHostBuffer_Args, device);
SAME_FIELD(pjrt_from_host_args, layout, PJRT_Client_BufferFromHostBuffer_Args, device_layout);
SAME_FIELD(pjrt_from_host_args, done, PJRT_Client_BufferFromHostBuffer_Args, done_with_host_buffer);
SAME_FIELD(pjrt_from_host_args, buffer, PJRT_Client_BufferFromHostBuffer_Args, buffer);
LONG_ENOUGH(pjrt_from_host_args, PJRT_Client_BufferFromHostBuffer_Args);

_Static_assert(offsetof(pjrt_layout, tiled_head) == offsetof(PJRT_Buffer_MemoryLayout, tiled), "tiled");
SAME_FIELD(pjrt_layout, minor_to_major, PJRT_Buffer_MemoryLayout, tiled.minor_to_major);
SAME_FIELD(pjrt_layout, n_tiles, PJRT_Buffer_MemoryLayout, tiled.num_tiles);
SAME_FIELD(pjrt_layout, type, PJRT_Buffer_MemoryLayout, type);
LONG_ENOUGH(pjrt_layout, PJRT_Buffer_MemoryLayout);
SAME_FIELD(pjrt_to_host_args, layout, PJRT_Buffer_ToHostBuffer_Args, host_layout);
SAME_FIELD(pjrt_to_host_args, dst, PJRT_Buffer_ToHostBuffer_Args, dst);
SAME_FIELD(pjrt_to_host_args, done, PJRT_Buffer_ToHostBuffer_Args, event);
LONG_ENOUGH(pjrt_to_host_args, PJRT_Buffer_ToHostBuffer_Args);
SAME_FIELD(pjrt_buffer_args, buffer, PJRT_Buffer_Destroy_Args, buffer);
SAME_FIELD(pjrt_executable_args, executable, PJRT_LoadedExecutable_Destroy_Args, executable);

SAME_FIELD(pjrt_execute_options, launch_id, PJRT_ExecuteOptions, launch_id);
SAME_FIELD(pjrt_execute_options, not_donated, PJRT_ExecuteOptions, non_donatable_input_indices);
SAME_FIELD(pjrt_execute_options, n_not_donated, PJRT_ExecuteOptions, num_non_donatable_input_indices);
LONG_ENOUGH(pjrt_execute_options, PJRT_ExecuteOptions);
SAME_FIELD(pjrt_execute_args, options, PJRT_LoadedExecutable_Execute_Args, options);
SAME_FIELD(pjrt_execute_args, args, PJRT_LoadedExecutable_Execute_Args, argument_lists);
SAME_FIELD(pjrt_execute_args, n_args, PJRT_LoadedExecutable_Execute_Args, num_args);
SAME_FIELD(pjrt_execute_args, results, PJRT_LoadedExecutable_Execute_Args, output_lists);
SAME_FIELD(pjrt_execute_args, done, PJRT_LoadedExecutable_Execute_Args, device_complete_events);
SAME_FIELD(pjrt_execute_args, chip, PJRT_LoadedExecutable_Execute_Args, execute_device);
LONG_ENOUGH(pjrt_execute_args, PJRT_LoadedExecutable_Execute_Args);

SAME_SLOT(PJRT_UNLOADED_SERIALIZE, PJRT_Executable_Serialize);
SAME_SLOT(PJRT_EXECUTABLE_GET_UNLOADED, PJRT_LoadedExecutable_GetExecutable);
SAME_SLOT(PJRT_EXECUTABLE_LOAD, PJRT_Executable_DeserializeAndLoad);
SAME_FIELD(pjrt_get_unloaded_args, unloaded, PJRT_LoadedExecutable_GetExecutable_Args, executable);
SAME_FIELD(pjrt_serialize_args, bytes, PJRT_Executable_Serialize_Args, serialized_bytes);
SAME_FIELD(pjrt_serialize_args, owner, PJRT_Executable_Serialize_Args, serialized_executable);
SAME_FIELD(pjrt_serialize_args, free_owner, PJRT_Executable_Serialize_Args, serialized_executable_deleter);
LONG_ENOUGH(pjrt_serialize_args, PJRT_Executable_Serialize_Args);
SAME_FIELD(pjrt_load_args, bytes, PJRT_Executable_DeserializeAndLoad_Args, serialized_executable);
SAME_FIELD(pjrt_load_args, executable, PJRT_Executable_DeserializeAndLoad_Args, loaded_executable);
SAME_FIELD(pjrt_load_args, options, PJRT_Executable_DeserializeAndLoad_Args, overridden_serialized_compile_options);
LONG_ENOUGH(pjrt_load_args, PJRT_Executable_DeserializeAndLoad_Args);

SAME_SLOT(PJRT_UNLOADED_DESTROY, PJRT_Executable_Destroy);
SAME_SLOT(PJRT_UNLOADED_COST, PJRT_Executable_GetCostAnalysis);
SAME_SLOT(PJRT_UNLOADED_MEMORY, PJRT_Executable_GetCompiledMemoryStats);
SAME_SLOT(PJRT_TOPOLOGY_CREATE, PJRT_TopologyDescription_Create);
SAME_SLOT(PJRT_TOPOLOGY_DESTROY, PJRT_TopologyDescription_Destroy);
SAME_SLOT(PJRT_TOPOLOGY_DESCRIPTIONS, PJRT_TopologyDescription_GetDeviceDescriptions);
SAME_SLOT(PJRT_COMPILE, PJRT_Compile);
SAME_FIELD(pjrt_named_value, name, PJRT_NamedValue, name);
SAME_FIELD(pjrt_named_value, type, PJRT_NamedValue, type);
SAME_FIELD(pjrt_named_value, integers, PJRT_NamedValue, int64_array_value);
SAME_FIELD(pjrt_named_value, number, PJRT_NamedValue, float_value);
SAME_FIELD(pjrt_named_value, n, PJRT_NamedValue, value_size);
_Static_assert(sizeof(pjrt_named_value) == sizeof(PJRT_NamedValue), "named values stand in arrays");
SAME_FIELD(pjrt_topology_create_args, option, PJRT_TopologyDescription_Create_Args, create_options);
SAME_FIELD(pjrt_topology_create_args, topology, PJRT_TopologyDescription_Create_Args, topology);
SAME_FIELD(pjrt_topology_args, topology, PJRT_TopologyDescription_Destroy_Args, topology);
SAME_FIELD(pjrt_descriptions_args, about, PJRT_TopologyDescription_GetDeviceDescriptions_Args, descriptions);
SAME_FIELD(pjrt_descriptions_args, n, PJRT_TopologyDescription_GetDeviceDescriptions_Args, num_descriptions);
SAME_FIELD(pjrt_compile_ahead_args, topology, PJRT_Compile_Args, topology);
SAME_FIELD(pjrt_compile_ahead_args, options_bytes, PJRT_Compile_Args, compile_options_size);
SAME_FIELD(pjrt_compile_ahead_args, executable, PJRT_Compile_Args, executable);
LONG_ENOUGH(pjrt_compile_ahead_args, PJRT_Compile_Args);
SAME_FIELD(pjrt_unloaded_args, executable, PJRT_Executable_Destroy_Args, executable);
SAME_FIELD(pjrt_unloaded_memory_args, code, PJRT_Executable_GetCompiledMemoryStats_Args, generated_code_size_in_bytes);
SAME_FIELD(pjrt_unloaded_memory_args, scratch, PJRT_Executable_GetCompiledMemoryStats_Args, temp_size_in_bytes);
LONG_ENOUGH(pjrt_unloaded_memory_args, PJRT_Executable_GetCompiledMemoryStats_Args);
SAME_FIELD(pjrt_cost_args, n, PJRT_Executable_GetCostAnalysis_Args, num_properties);
SAME_FIELD(pjrt_cost_args, value, PJRT_Executable_GetCostAnalysis_Args, properties);

#define SAME_NUMBER(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #ours)
SAME_NUMBER(PJRT_CODE_RESOURCE_EXHAUSTED, PJRT_Error_Code_RESOURCE_EXHAUSTED);
SAME_NUMBER(PJRT_CODE_DEADLINE_EXCEEDED, PJRT_Error_Code_DEADLINE_EXCEEDED);
SAME_NUMBER(PJRT_CODE_NOT_FOUND, PJRT_Error_Code_NOT_FOUND);
SAME_NUMBER(PJRT_CODE_ALREADY_EXISTS, PJRT_Error_Code_ALREADY_EXISTS);
SAME_NUMBER(PJRT_CODE_ABORTED, PJRT_Error_Code_ABORTED);
SAME_NUMBER(PJRT_CODE_UNIMPLEMENTED, PJRT_Error_Code_UNIMPLEMENTED);
SAME_NUMBER(PJRT_READ_DURING_CALL, PJRT_HostBufferSemantics_kImmutableOnlyDuringCall);
SAME_NUMBER(0, PJRT_Buffer_MemoryLayout_Type_Tiled);
SAME_NUMBER(PJRT_PRED, PJRT_Buffer_Type_PRED);
SAME_NUMBER(PJRT_S8, PJRT_Buffer_Type_S8);
SAME_NUMBER(PJRT_S32, PJRT_Buffer_Type_S32);
SAME_NUMBER(PJRT_S64, PJRT_Buffer_Type_S64);
SAME_NUMBER(PJRT_U8, PJRT_Buffer_Type_U8);
SAME_NUMBER(PJRT_F16, PJRT_Buffer_Type_F16);
SAME_NUMBER(PJRT_F32, PJRT_Buffer_Type_F32);
SAME_NUMBER(PJRT_F64, PJRT_Buffer_Type_F64);
SAME_NUMBER(PJRT_BF16, PJRT_Buffer_Type_BF16);
SAME_NUMBER(PJRT_VALUE_INTEGER, PJRT_NamedValue_kInt64);
SAME_NUMBER(PJRT_VALUE_INTEGERS, PJRT_NamedValue_kInt64List);
SAME_NUMBER(PJRT_VALUE_FLOAT, PJRT_NamedValue_kFloat);

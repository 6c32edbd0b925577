/* Byte offsets of what a launch reads, for the entries in assembly (names/launches_x86_64.inc). lanes.h and abi.h
 * assert each. */
#pragma once

#define CACHE_CALLER 8
#define CACHE_PLACES 16
#define PLACE_BYTES 16
#define PLACE_LANE 8
#define LANE_WORD 0
#define LANE_GATE 8
#define LANE_CREDIT 16
#define LANE_LAUNCHED 20
#define GATE_OPEN 8
#define CONFIG_STREAM 32
